// The pools of a cluster's machines, from the controller's --nodes FILE, as an administrator
// changes them while it runs: a mounted ConfigMap. Used by the verb `controller`; not thread-safe.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::cmd {

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
