// A pod's way to the server: rpc v1.Pods/Sync and Grant. A connection that does not answer is given
// up for a new one, because the server may have moved to another node. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/task_pool.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/checkpoint/checkpoint_store.h"

namespace shirabe::sidecar {

class ServerLink {
 public:
  virtual ~ServerLink() = default;
  // The server's answer, or its refusal; kUnavailable or kDeadlineExceeded if there was none.
  virtual StatusOr<v1::SyncReply> Sync(const v1::SyncRequest& request, absl::Duration timeout) = 0;
  virtual StatusOr<v1::GrantReply> Grant(const v1::GrantRequest& request,
                                         absl::Duration timeout) = 0;
};

// To config.server, by TLS with config.ca, or in plain text without one.
std::unique_ptr<ServerLink> MakeServerLink(const v1::PodConfig& config);

// Passes a request of the server on to the program: puts it into the control file, unless it stands
// there, since a sidecar that was restarted gets again what it has passed on. Used by the sidecar's
// thread, as is what follows.
Status ForwardRequest(const v1::PodRequest& request, const std::string& control_file);

// Deletes the checkpoints that the server does not need any more.
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
  mutable Mutex mutex_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  TaskPool task_pool_{1};  // last: its thread uses all of the above
};

}  // namespace shirabe::sidecar
