// Runs a credential plugin (client.authentication.k8s.io), as cloud providers ship them: a program
// that is told of the cluster in an environment variable and prints an ExecCredential. Called by
// kube/credentials.cc. Any thread; blocks until the program has ended, at most a minute.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "kube/config.h"

namespace shirabe::kube {

struct ExecCredential {
  std::string token;
  std::string certificate;  // PEM
  std::string key;
  absl::Time expires = absl::InfiniteFuture();
};

// kPermissionDenied, with the last words of the program's stderr, if it gives no credential;
// kNotFound if there is no such program.
StatusOr<ExecCredential> RunExecPlugin(const Config& config, Clock* clock,
                                       absl::Duration patience = absl::Seconds(60));

}  // namespace shirabe::kube
