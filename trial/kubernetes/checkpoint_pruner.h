// Deletes checkpoints that an experiment does not keep from its volume. A sidecar reaches the
// folder of its own attempt, on a claim of the trial's own all of that trial, and nothing else.
// What no sidecar has deleted after a while, on a volume that trials share, a Job does. Part of the
// executor `kubernetes`; thread-safe.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/attempt_status.h"
#include "trial/kubernetes/cluster_context.h"

namespace shirabe::trial {

class CheckpointPruner {
 public:
  using Checkpoints = google::protobuf::RepeatedPtrField<v1::Checkpoint>;

  // The context outlives it.
  explicit CheckpointPruner(const ClusterContext* context) : context_(*context) {}

  // Where checkpoints lie is the same for all attempts of an experiment: by the first of these a
  // Job knows, by the second its sidecars.
  void UseVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec);
  void RecordScope(const AttemptRequest& request);

  void Prune(const v1::Checkpoint& checkpoint);
  // What the attempt's sidecar has deleted by now is done; adds to the reply what else it can
  // reach.
  void FillReply(const AttemptKey& key, const Checkpoints& deleted, v1::SyncReply& reply);
  // The experiment is deleted, and all its checkpoints.
  void Forget(const ExperimentKey& experiment);

  void OnTimer(absl::Duration now);
  std::optional<absl::Duration> NextDue() const;

 private:
  // Whose sidecars can reach a checkpoint.
  enum class Scope { kAttempt, kTrial };
  // Of an experiment.
  struct Queue {
    Scope scope = Scope::kAttempt;
    std::vector<v1::Checkpoint> waiting;
    std::optional<Json> job;             // without the list; none = no volume is shared
    std::vector<v1::Checkpoint> handed;  // of those waiting, to the Job that runs
    std::optional<absl::Duration> due;   // monotonic; when the Job is looked after
    int failures = 0;                    // in a row
  };

  void Run(const ExperimentKey& experiment, const Json& job);
  static bool Reaches(const AttemptKey& key, const v1::Checkpoint& checkpoint, Scope scope);

  const ClusterContext& context_;
  mutable Mutex mutex_;
  std::map<ExperimentKey, Queue> queues_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::trial
