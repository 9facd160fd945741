// Who calls, and what they may do. A caller shows a bearer token; roles are admin (everything),
// user (one namespace), trial (what one attempt reports) and cluster user (whom a cluster knows,
// and who may do here what its RBAC allows there). Tokens come from a file that only its owner can
// read: its first line is the administrator's, the others are
//   user NAMESPACE TOKEN
// A trial's token is that of its attempt: what has its shape is taken for one, opens nothing but a
// trial's own methods (AccessRules, below), and is proved by each of them against the store. What
// is neither is shown to the cluster, where there is one, and is otherwise unknown. Immutable once
// made, any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::service {

// To experiments of a namespace, and to all that is theirs.
enum class Permission { kRead, kCreate, kChange, kDelete };

struct Principal {
  enum class Role { kAdmin, kUser, kTrial, kClusterUser };
  Role role = Role::kTrial;
  std::string ns = {};     // kUser: the namespace
  std::string token = {};  // kTrial: of an attempt
  std::string name = {};   // for people: admin, user of red, alice@example.com
  std::string door = {};   // the listener by which it came: grpc, http, katib
  // kClusterUser: what the cluster says; ns "" = in all of them. May ask it, so it may take a
  // moment.
  std::function<Status(Permission, const std::string& ns)> authorize = {};
  std::function<Status()> authorize_metrics = {};

  // kPermissionDenied, saying what the caller is and what it takes.
  Status May(Permission permission, const std::string& ns) const;
  Status MayUse(const std::string& ns) const { return May(Permission::kRead, ns); }
  // Whether something of that namespace is to be shown; an error if that cannot be asked now.
  StatusOr<bool> Sees(const std::string& ns) const;
  Status MustBeAdmin(const std::string& what) const;
  Status MayReadMetrics() const;
  // As recorded with what the caller causes; the time is set where it is stored.
  v1::Actor Actor() const;
};

class Tokens {
 public:
  // Reads `path`; where there is no such file, writes it with a new administrator's token and mode
  // 0600. kPermissionDenied if others can read it; kInvalidArgument, with the line, for what it
  // may not hold.
  static StatusOr<Tokens> Load(const std::string& path);
  // Everybody is the administrator (`serve --insecure`, on loopback only).
  static Tokens Open();

  // Who shows a token that is not in the file: kUnauthenticated for one that the cluster does not
  // know, kUnavailable where it cannot be asked. Called by any thread.
  // `from` is the address that shows it.
  using IntrospectToken =
      std::function<StatusOr<Principal>(const std::string& token, const std::string& from)>;
  void SetCluster(IntrospectToken introduce) { introspect_token_ = std::move(introduce); }

  // `authorization` is the value of that header: "Bearer …". kUnauthenticated without one, and for
  // one that is not in the file, not the cluster's, and not of the shape of an attempt's.
  StatusOr<Principal> Check(const std::string& authorization, const std::string& from) const;
  // Whether the answer takes more than a look at the file.
  bool MustAsk(const std::string& authorization) const;
  bool open() const { return open_; }

 private:
  bool open_ = false;
  std::string admin_;
  std::map<std::string, std::string> users_;  // SHA-256 of the token → namespace
  IntrospectToken introspect_token_;          // none = there is no cluster
};

// The one table of rights: every method of gRPC and every route of HTTP, and whom it is open to.
// Asked by the gRPC and HTTP servers before a call is answered, and by guarded_client.cc for the
// namespace that a call names. What is not in the table is open to no caller. Immutable, any
// thread.
struct AccessRule {
  enum class For {
    kNobody,     // not in the table
    kAnyone,     // without a token
    kCallers,    // a known caller, a trial excepted; what it shows is the caller's own
    kNamespace,  // a caller that may do `permission` in the namespace
    kTrials,     // the same, and a trial for what is its own, which its token proves
    kPods,       // the attempt whose token is in the message; the executor proves it
    kMetrics,    // the administrator, or who may read /metrics by the cluster's rules
  };
  For whom = For::kNobody;
  Permission permission = Permission::kRead;
};

// By the full name of a method (shirabe.v1.Shirabe/GetExperiment) or the id of a route
// (getExperiment).
const std::map<std::string, AccessRule>& AccessRules();
AccessRule AccessRuleOf(const std::string& method);

// What can be told before the namespace is known: kPermissionDenied for a trial where trials have
// no business, and for everybody where the table has no entry.
Status CheckMethodAccess(const Principal& principal, const std::string& method);
// Whether the caller may do it there. A trial that passes has still to prove that it is its own.
Status CheckAccess(const Principal& principal, const std::string& method, const std::string& ns);

}  // namespace shirabe::service
