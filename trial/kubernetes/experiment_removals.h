// Deletes what experiments, or single trials, that were removed have in the cluster: Jobs, pods,
// objects of other kinds, claims. Tried until the API server has done it, also by the next process
// (removal_records.h). Part of the executor `kubernetes`; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "google/protobuf/struct.pb.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/cluster_context.h"

namespace shirabe::trial {

class ExperimentRemovals {
 public:
  // The context outlives it. Reads what earlier processes have begun.
  explicit ExperimentRemovals(const ClusterContext* context);

  // What the objects of its trials are.
  void RecordKind(const ExperimentKey& experiment, const google::protobuf::Struct& trial_spec);
  // Before its files go: on disk, so that the next process goes on.
  void Record(const ExperimentKey& experiment);
  // Once they have gone: of an experiment, with trial 0, or of one trial.
  void Begin(const TrialKey& trial);

  // Those that a process before this one has begun are told to the controller, which knows whether
  // the experiment is deleted and no other has its name by now, and then removes its files again.
  // `owns` says of which experiments there are new ones.
  void Resume(const std::function<bool(const ExperimentKey&)>& owns);

  void OnTimer(absl::Duration now);
  std::optional<absl::Duration> NextDue() const;

 private:
  void Remove(const TrialKey& trial, const ObjectKind& kind);

  const ClusterContext& context_;
  mutable Mutex mutex_;
  std::set<ExperimentKey> unfinished_ ABSL_GUARDED_BY(mutex_);  // begun by an earlier process
  // What is to be deleted, and when; trial 0 = all.
  std::map<TrialKey, absl::Duration> removals_ ABSL_GUARDED_BY(mutex_);
  // Of those to be deleted, where it is neither Job nor Pod.
  std::map<ExperimentKey, ObjectKind> kinds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::trial
