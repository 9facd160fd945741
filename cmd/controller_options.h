// The flags of the verb `controller`, and the file of pools that it reads again. Used by its main
// thread.
#pragma once

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/status.h"
#include "cmd/listen_options.h"
#include "cmd/options.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::cmd {

struct ControllerFlags {
  ListenOptions listen_options;
  std::string tls_ca;
  std::string advertise;
  std::string image;
  std::string kubeconfig;
  std::string kube_context;
  std::string lease_namespace;
  std::string nodes;
  std::string trial_account;  // "" = trials are made with the controller's own rights
  std::string pod_storage_class;
  std::string pod_storage_size = "8Gi";
  bool adopt_all = false;
};

void AddControllerFlags(Options& options, ControllerFlags* flags);

// kInvalidArgument, as a mistake of usage, for flags that are missing or do not go together.
Status CheckControllerFlags(const ControllerFlags& flags);

// The pools of a cluster's machines, from the controller's --nodes FILE, as an administrator
// changes them while it runs: a mounted ConfigMap.
class PoolsFile {
 public:
  // Without a path there are none. A file that cannot be read, or holds mistakes, is refused, but
  // where `kept` has a copy of the last one that was right, which is used then.
  static StatusOr<PoolsFile> Open(const std::string& path, const std::string& kept);

  const v1::NodePools& pools() const { return pools_; }

  // Looks at the file, at most every few seconds, and takes over what it says. Whether that is
  // something else than before. Where it is wrong the pools stay, and what is wrong is logged.
  bool Reload(absl::Duration monotonic);

 private:
  PoolsFile(std::string path, std::string kept) : path_(std::move(path)), kept_(std::move(kept)) {}
  Status Take(std::string text);

  std::string path_, kept_;
  std::string text_;  // as it was read last, right or wrong
  v1::NodePools pools_;
  absl::Duration next_look_ = absl::ZeroDuration();
};

}  // namespace shirabe::cmd
