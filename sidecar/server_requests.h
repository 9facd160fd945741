// What the server asks of the sidecar: to pass a request on to the program, and to delete
// checkpoints that are not needed any more. Used by the sidecar's thread.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/checkpoint/checkpoint_store.h"
#include "trial/task_pool.h"

namespace shirabe::sidecar {

// Puts the request into the control file, unless it stands there: a sidecar that was restarted is
// told again of what it has passed on.
Status ForwardRequest(const v1::PodRequest& request, const std::string& control_file);

class PruneWorker {
 public:
  // The store outlives it.
  explicit PruneWorker(const trial::CheckpointStore* store) : store_(store) {}

  // Soon, in a thread of its own; one that is under way or done is left.
  void Prune(const v1::Checkpoint& checkpoint);
  // Those that are gone, until they are Acknowledged.
  std::vector<v1::Checkpoint> Done() const;
  void Acknowledged(const v1::PodState& state);

 private:
  struct Task {
    v1::Checkpoint checkpoint;
    bool done = false;
  };
  void Finish(const v1::Checkpoint& checkpoint, bool done);

  const trial::CheckpointStore* const store_;
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;       // guarded by mutex_
  trial::TaskPool task_pool_{1};  // last: its thread uses all of the above
};

}  // namespace shirabe::sidecar
