// Who we are to the API server, now: the token of a file that is rotated, what a plugin gives until
// it expires, or what the configuration says. Called by kube/transport.cc before each exchange.
// Thread-safe; a plugin runs once for all who wait.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "kube/cluster_config.h"

namespace shirabe::kube {

struct Credential {
  std::string authorization;  // the header's value; "" = none
  std::string certificate;    // PEM; "" = none
  std::string key;
  int64_t generation = 0;  // grows whenever something of it changes
};

class Credentials {
 public:
  Credentials(const Config& config, Clock* clock) : config_(config), clock_(clock) {}

  StatusOr<Credential> Current();
  // The server has refused that generation (401). True if there may be another one to try.
  bool Renew(int64_t refused);

 private:
  Status ReadToken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status RunPlugin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetCurrent(Credential credential) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Config config_;
  Clock* const clock_;
  Mutex mutex_;
  Credential current_ ABSL_GUARDED_BY(mutex_);
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;  // current_ has been made
  std::string stamp_ ABSL_GUARDED_BY(mutex_);   // of the token file that was read
  absl::Time expires_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
};

// Runs a credential plugin (client.authentication.k8s.io), as cloud providers ship them: a program
// that is told of the cluster in an environment variable and prints an ExecCredential. Called by
// Credentials. Any thread; blocks until the program has ended, at most a minute.
struct ExecCredential {
  std::string token;
  std::string certificate;  // PEM
  std::string key;
  absl::Time expires = absl::InfiniteFuture();
};

// kPermissionDenied, with the end of the program's stderr, if it gives no credential; kNotFound if
// there is no such program.
StatusOr<ExecCredential> RunExecPlugin(const Config& config, Clock* clock,
                                       absl::Duration patience = absl::Seconds(60));

}  // namespace shirabe::kube
