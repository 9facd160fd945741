// Where the attempts of this machine may report their status over HTTP (status_endpoint.h): each
// has an address and a token of its own, which lie beside its other files, in trainer-url and
// trainer-token. A program outlives us, so what adopts it listens at the port that it was told.
// Thread-safe.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"
#include "trial/executor.h"
#include "trial/file_layout.h"
#include "trial/local/status_endpoint.h"
#include "trial/local/trial_environment.h"

namespace shirabe::trial {

inline constexpr char kTrainerUrlFile[] = "trainer-url";
inline constexpr char kTrainerTokenFile[] = "trainer-token";

// What Kubeflow's controller sets where a TrainJob may report (KEP-2779). `token_file` has the
// token. The address is http: no certificate is needed.
Environment TrainerVariables(const std::string& url, const std::string& token_file);

// http://127.0.0.1:PORT/PATH into its parts; kInvalidArgument for anything else.
struct TrainerAddress {
  uint16_t port = 0;
  std::string path;  // "/…"
};
StatusOr<TrainerAddress> ParseTrainerUrl(const std::string& url);

std::string MakeTrainerToken();

class AttemptEndpoints {
 public:
  // Does nothing without `handlers`. `layout` outlives it.
  AttemptEndpoints(const FileLayout* layout, const StatusHandlers& handlers);

  // For the program of an attempt that is about to start; none where there is no port for it.
  Environment Variables(const AttemptKey& key);
  // Before it starts: its files, and it may report from now on.
  Status Open(const AttemptKey& key);
  // One that was started by an earlier process, or by us. What is missing is logged.
  void Adopt(const AttemptKey& key);
  void Close(const AttemptKey& key);

 private:
  StatusOr<uint16_t> Port(uint16_t wanted);
  void Add(const AttemptKey& key, const std::string& token);
  Status AdoptFromFiles(const AttemptKey& key);

  const FileLayout* const layout_;
  const StatusHandlers handlers_;
  Mutex mutex_;
  uint16_t port_ ABSL_GUARDED_BY(mutex_) = 0;  // of attempts that begin here; 0: not yet open
  std::set<AttemptKey> known_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<StatusEndpoint> endpoint_;  // null without handlers
};

}  // namespace shirabe::trial
