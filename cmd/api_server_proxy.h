// The way to a Shirabe in a cluster for a user with a kubeconfig, and nothing to set up before:
// over the API server, which passes requests on to our Service, as a user whom its RBAC knows.
//   kube://NAMESPACE/SERVICE
// is such an address; a plugin of kubectl goes there where nothing else is said. Calls of the gRPC
// client come here in this process, and go on as gRPC-Web (service/http/grpc_web.h); with them goes
// a token of the cluster, made for Shirabe alone and for minutes, and never the user's own.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kube/cluster_config.h"
#include "kube/transport.h"

namespace grpc {
class Channel;
}

namespace shirabe::cmd {

using ChannelPtr = std::shared_ptr<grpc::Channel>;  // shared: gRPC's own

inline constexpr char kClusterScheme[] = "kube://";
// As deploy/kubernetes installs it.
inline constexpr char kDefaultClusterAddress[] = "kube://shirabe-system/shirabe";

struct ApiServerProxy {
  std::string address;  // kube://NAMESPACE/SERVICE
  kube::Config config;  // of the cluster
  std::string ns;       // that the user is in
  std::string token;    // to be shown; "" = one is made
  Clock* clock = nullptr;
};

// Everything ends with the last who holds the channel. Nothing is connected yet. kInvalidArgument
// for what is no such address.
StatusOr<ChannelPtr> OpenApiServerProxy(ApiServerProxy proxy);

// Whether this program was called as kubectl-shirabe; said once, by main.
void SetPlugin(const std::string& called_as);
bool IsPlugin();

// The token that a user of a cluster shows a Shirabe in it: of the service account shirabe-admin
// beside the controller, where the user may make one, else of the account `shirabe` of the user's
// namespace. It is for Shirabe alone, ends after ten minutes, and is made again before that.
// Thread-safe.
class ClusterToken {
 public:
  struct Accounts {
    std::string system;  // the namespace of the controller
    std::string ns;      // of the user
  };
  ClusterToken(kube::Transport* transport, Clock* clock, Accounts accounts)
      : transport_(transport), clock_(clock), accounts_(std::move(accounts)) {}

  // kPermissionDenied, with what to ask an administrator for; kUnavailable if nothing is installed.
  StatusOr<std::string> Get();

 private:
  StatusOr<std::string> Make(const std::string& ns, const std::string& account);
  Status NoShirabe() const;
  Status NoToken(const Status& why) const;

  kube::Transport* const transport_;
  Clock* const clock_;
  const Accounts accounts_;
  Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  absl::Duration renew_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

}  // namespace shirabe::cmd
