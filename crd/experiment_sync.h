// One pass for one experiment between the cluster and the store. The object wants something: it is
// admitted, its counts are followed, its end ends the experiment. The store knows what is: it is
// written back as status, Trials, a Suggestion and Events. Level-based: a pass needs only the
// experiment's name, and may come at any time, as often as one likes.
//
// An object and its records belong together by the object's uid (experiment::kObjectUid). Records
// without one were made through the API, and are no object's; an object whose records are gone is
// not run again by itself. Thread-safe; for one experiment, one call at a time.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "crd/sync_context.h"
#include "crd/trial_objects.h"

namespace shirabe::crd {

class ExperimentSync {
 public:
  explicit ExperimentSync(const SyncContext& context);
  ~ExperimentSync();

  // When to call again, whatever happens: infinite = only when something changes.
  StatusOr<absl::Duration> Reconcile(const ExperimentKey& key);

 private:
  struct SyncState;  // what is remembered of an experiment between two passes: never the truth
  SyncState& SyncStateOf(const ExperimentKey& key);
  bool IsWanted(const kube::Json& object) const;

  // The ways in which object and records can stand to each other.
  StatusOr<absl::Duration> EndOf(SyncState& tracked, const v1::Experiment& stored);
  StatusOr<absl::Duration> Begin(SyncState& tracked, const kube::Json& object);
  StatusOr<absl::Duration> Follow(SyncState& tracked, const kube::Json& object,
                                  const v1::Experiment& stored);

  struct PreparedObject;
  StatusOr<PreparedObject> Prepare(const kube::Json& object);
  Status FollowSpec(SyncState& tracked, const kube::Json& object, const v1::Experiment& stored);
  Status Refuse(SyncState& tracked, const kube::Json& object, const std::string& reason,
                const std::string& message);
  Status Await(SyncState& tracked, const kube::Json& object, const std::string& reason,
               const std::string& message);
  Status PutStatus(SyncState& tracked, const kube::Json& object, kube::Json wanted);

  const SyncContext context_;
  Mutex mutex_;
  // What an entry points to is its one caller's.
  std::map<ExperimentKey, std::unique_ptr<SyncState>> sync_states_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::crd
