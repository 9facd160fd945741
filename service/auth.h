// Who calls, and what he may do. A caller shows a bearer token; roles are admin (everything), user
// (one namespace) and trial (what one attempt reports). Tokens come from a file that only its
// owner can read: its first line is the administrator's, the others are
//   user NAMESPACE TOKEN
// A trial's token is that of its attempt, and proves itself when the report is committed. Immutable
// once made, any thread; `Reload` makes a new one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/status.h"

namespace shirabe::service {

struct Principal {
  enum class Role { kAdmin, kUser, kTrial };
  Role role = Role::kTrial;
  std::string ns;     // kUser: the namespace; kTrial: of its trial, once known
  std::string token;  // kTrial: of an attempt

  // kPermissionDenied, saying what the caller is and what it takes.
  Status MayUse(const std::string& ns) const;
  Status MustBeAdmin(const std::string& what) const;
};

class Tokens {
 public:
  // Reads `path`; where there is no such file, writes it with a new administrator's token and mode
  // 0600. kPermissionDenied if others can read it; kInvalidArgument, with the line, for what it
  // may not hold.
  static StatusOr<Tokens> Load(const std::string& path);
  // Everybody is the administrator (`serve --insecure`, on loopback only).
  static Tokens Open();

  // `authorization` is the value of that header: "Bearer …". kUnauthenticated without one. A token
  // that is not in the file is taken for an attempt's.
  StatusOr<Principal> Check(const std::string& authorization) const;
  bool open() const { return open_; }

 private:
  bool open_ = false;
  std::string admin_;
  std::map<std::string, std::string> users_;  // SHA-256 of the token → namespace
};

}  // namespace shirabe::service
