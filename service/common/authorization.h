// Who calls, and what they may do. A caller shows a bearer token; roles are admin (everything),
// user (one namespace), monitor (reads /metrics), trial (what one attempt reports) and cluster user
// (whom a cluster knows, and who may do here what its RBAC allows there). Tokens come from a file
// that only its owner can read: its first line is the administrator's, the others are
//   user NAMESPACE TOKEN
//   metrics TOKEN
// A trial's token is that of its attempt: what has its shape is taken for one, opens nothing but a
// trial's own methods (RightsOf, below), and is proved by each of them against the store. What
// is neither is shown to the cluster, where there is one, and is otherwise unknown. Any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/rights.pb.h"

namespace shirabe::service {

using Permission = v1::Rights::Permission;

struct Principal {
  enum class Role { kAdmin, kUser, kMonitor, kTrial, kClusterUser };
  Role role = Role::kTrial;
  std::string ns = {};        // kUser: the namespace
  std::string token = {};     // kTrial: of an attempt
  std::string name = {};      // for people: admin, user of red, alice@example.com
  std::string listener = {};  // by which it came: grpc, http, katib
  // kClusterUser: what the cluster says; ns "" = in all of them. May ask it, so it may take a
  // moment.
  std::function<Status(Permission, const std::string& ns)> authorize = {};
  std::function<Status()> authorize_metrics = {};

  // kPermissionDenied, saying what the caller is and what it takes.
  Status CheckPermission(Permission permission, const std::string& wanted) const;
  Status CheckRead(const std::string& wanted) const {
    return CheckPermission(v1::Rights::READ, wanted);
  }
  // Whether something of that namespace is to be shown; an error if that cannot be asked now.
  StatusOr<bool> CanSee(const std::string& wanted) const;
  Status CheckAdmin(const std::string& what) const;
  Status CheckReadMetrics() const;
  // As recorded with what the caller causes; the time is set where it is stored.
  v1::Actor Actor() const;
};

// Copies share one list.
class Tokens {
 public:
  // Reads `path`; where there is no such file, writes it with a new administrator's token and mode
  // 0600. kPermissionDenied if others can read it; kInvalidArgument, with the line, for what it
  // may not hold.
  static StatusOr<Tokens> Load(const std::string& path);
  // Reads the file again: who is no longer in it is refused from now on. On an error of Load all
  // stays as it was. Of tokens that were loaded.
  Status Reload();
  // Everybody is the administrator (`serve --insecure`, on loopback only).
  static Tokens Open();

  // Who shows a token that is not in the file: kUnauthenticated for one that the cluster does not
  // know, kUnavailable where it cannot be asked. Called by any thread.
  // `from` is the address that shows it.
  using IntrospectToken =
      std::function<StatusOr<Principal>(const std::string& token, const std::string& from)>;
  void SetCluster(IntrospectToken introspect) { introspect_token_ = std::move(introspect); }

  // `authorization` is the value of that header: "Bearer …". kUnauthenticated without one, and for
  // one that is not in the file, not the cluster's, and not of the shape of an attempt's.
  StatusOr<Principal> Check(const std::string& authorization, const std::string& from) const;
  // Whether the answer takes more than a look at the file.
  bool MustAsk(const std::string& authorization) const;
  bool open() const { return open_; }

 private:
  using Known = std::map<std::string, Principal>;  // by the SHA-256 of a token
  struct Shared {
    Mutex mutex;
    Known known ABSL_GUARDED_BY(mutex);
  };
  static StatusOr<Known> Read(const std::string& path);
  // One that is in the file.
  std::optional<Principal> Find(const std::string& token) const;

  bool open_ = false;
  std::string path_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();  // shared: by copies
  IntrospectToken introspect_token_;                             // none = there is no cluster
};

// The one table of rights is the option `rights` of every method (proto/shirabe/v1/rights.proto);
// routes of HTTP have those of the method that they stand for (service/http/route_table.h). Asked
// by the gRPC and HTTP servers before a call is answered, and by guarded_client.cc for the
// namespace that a call names. What has no such option is open to no caller. Immutable, any thread.

v1::Rights MakeRights(v1::Rights::Audience audience, Permission permission = v1::Rights::READ);
// By the full name of a method: shirabe.v1.Shirabe/GetExperiment.
v1::Rights RightsOf(const std::string& method);

// What can be told before the namespace is known: kPermissionDenied for a trial where trials have
// no business, and for everyone where nothing is said.
Status CheckMethodAccess(const Principal& principal, const v1::Rights& rights);
// Whether the caller may do it there. A trial that passes has still to prove that it is its own.
Status CheckAccess(const Principal& principal, const v1::Rights& rights, const std::string& ns);

}  // namespace shirabe::service
