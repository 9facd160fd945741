// What attempts that are not watched any more have left in the cluster: their pods, which wait for
// us to let go of them, and then their object (Teardowns); and pods and objects whose attempt no
// one knows (OrphanFinder). Looked at again with each change of a pod. Jobs of a namespace that end
// within PodTimeouts::gather of each other are deleted by one request. Part of the executor
// `kubernetes`; thread-safe.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "trial/kubernetes/attempt_table.h"
#include "trial/kubernetes/cluster_context.h"

namespace shirabe::trial {

// The pods of an attempt that wait for us to let go of them.
std::vector<Json> HeldPods(const ClusterView& view, const AttemptKey& key);

class Teardowns {
 public:
  // The context outlives it.
  explicit Teardowns(const ClusterContext* context) : context_(*context) {}

  struct Object {
    kube::Ref ref;
    std::string uid;
    std::string id;        // of a Job that is deleted together with others; set by Add
    bool deleted = false;  // it is, or it is to stay: then only its pods are let go
    bool suspend = false;  // it stays, and its operator is to make no pods of it any more
  };
  // From now on this is to go; Continue begins.
  void Add(const AttemptKey& key, Object object);
  // Goes on with it, if there is something to do. Any key.
  void Continue(const AttemptKey& key);
  // Not to be done after all.
  void Cancel(const AttemptKey& key);

  bool Knows(const AttemptKey& key) const;
  // For a new attempt of that name: kUnavailable while the object of the old one is being deleted.
  Status MakeRoom(const AttemptKey& key);

  void OnTimer(absl::Duration now);
  std::optional<absl::Duration> NextDue() const;

 private:
  struct Teardown {
    Object object;
    absl::Duration since;
    bool busy = false;
    std::optional<absl::Duration> due;
  };

  // Jobs of one namespace that wait to be deleted together.
  struct Batch {
    std::vector<AttemptKey> keys;
    absl::Duration due = -absl::InfiniteDuration();  // the earliest time of the next request
  };

  void LetGo(const AttemptKey& key, const Object& object, const std::vector<Json>& held);
  void DeleteLater(const AttemptKey& key);
  void DeleteDue(absl::Duration now);
  void DeleteJobs(const std::vector<std::pair<AttemptKey, Object>>& jobs);
  void Finish(const AttemptKey& key, const Status& status);

  const ClusterContext& context_;
  mutable Mutex mutex_;
  std::map<AttemptKey, Teardown> teardowns_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Batch> batches_ ABSL_GUARDED_BY(mutex_);  // by namespace
};

// Finds pods and objects of attempts that are not known. A process that dies between closing an
// attempt in the store and letting go of its pods, or deleting its object, leaves them without an
// owner. Whatever of an experiment of ours is unknown for long enough was closed: what is open is
// adopted before the first pass over the experiment. One without a pass has ended, or been deleted,
// if it is ours at all, which its folder says: the controller is told. Part of the executor
// `kubernetes`; called by one thread.
class OrphanFinder {
 public:
  // All of them outlive it.
  OrphanFinder(const ClusterContext* context, const AttemptTable* attempts, Teardowns* teardowns)
      : context_(*context), attempts_(*attempts), teardowns_(*teardowns) {}

  // Looks around if it is time to: true then.
  bool OnTimer(absl::Duration now);
  absl::Duration NextDue() const { return next_; }

 private:
  void Release(const AttemptKey& key, const Teardowns::Object& object);

  const ClusterContext& context_;
  const AttemptTable& attempts_;
  Teardowns& teardowns_;
  absl::Duration next_;
  std::map<AttemptKey, absl::Duration> orphans_;  // and since when
  std::set<ExperimentKey> asked_;                 // experiments of orphans that were told once
};

}  // namespace shirabe::trial
