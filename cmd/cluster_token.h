// The token that a user of a cluster shows a Shirabe in it: of the service account shirabe-admin
// beside the controller, where he may make one, else of the account `shirabe` of his namespace. It
// is for Shirabe's doors alone, ends after ten minutes, and is made anew before that. Thread-safe.
#pragma once

#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "kube/transport.h"

namespace shirabe::cmd {

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
  std::mutex mutex_;
  std::string token_;
  absl::Duration renew_at_ = -absl::InfiniteDuration();
};

}  // namespace shirabe::cmd
