// Has the Job run (checkpoint_volume.h) that deletes what an experiment has left on the volume that
// its trials share, and keeps a new experiment of its name waiting until that is done. Part of the
// executor `kubernetes`; thread-safe. Calls block but for the timer's.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "trial/attempt_status.h"
#include "trial/kubernetes/cluster_context.h"

namespace shirabe::trial {

// Whether the volume of its checkpoints may be used here: one of the node's own is on a list.
bool MayUseVolume(const v1::ExperimentSpec& spec, const PodOptions& pods);

class VolumeCleaner {
 public:
  // The context outlives it.
  explicit VolumeCleaner(const ClusterContext* context) : context_(*context) {}

  // The Job is started before the call returns, if the API server lets us: from then on the cluster
  // remembers, should we die.
  void Clean(const ExperimentKey& experiment, const v1::ExperimentSpec& spec);
  // OK if an attempt finds nothing of another experiment there. kUnavailable, kResourceExhausted:
  // not yet, in words.
  Status CheckClean(const AttemptRequest& request);

  void OnTimer(absl::Duration now);
  std::optional<absl::Duration> NextDue() const;

 private:
  // A Job that was not started yet.
  struct Cleanup {
    Json job;
    absl::Duration due;  // monotonic
    int failures = 0;
  };

  void Start(const ExperimentKey& experiment, const Json& job);

  const ClusterContext& context_;
  mutable Mutex mutex_;
  std::map<ExperimentKey, Cleanup> cleanups_ ABSL_GUARDED_BY(mutex_);
  // Whose shared folder is known to hold nothing of another's.
  std::set<ExperimentKey> clean_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::trial
