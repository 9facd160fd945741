// Copies committed checkpoints, and the outputs of programs that have ended well, to the store that
// an experiment names (spec.shirabe.artifacts), in threads of its own, and brings checkpoints back
// where the machine's own copy is gone. What fails is tried again a few times, later and later, and
// then said; the checkpoint on this machine stays. Nothing is remembered across a restart: what is
// committed is announced again then, and a copy that is complete costs one request.
//
// An attempt whose program has ended is shown as running until its checkpoints are copied or given
// up, so that no record says that it is over while a copy is missing that could still be made.
// Owned by CheckpointCommitter; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "artifacts/retries.h"
#include "artifacts/store_table.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "base/task_pool.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "trial/attempt_status.h"
#include "trial/file_layout.h"

namespace shirabe::trial {

struct CopyRetries {
  // Of one call of the store, and of a checkpoint as a whole.
  artifacts::RetryPolicy calls{.attempts = 4};
  artifacts::RetryPolicy checkpoints{
      .attempts = 3, .backoff = {.first = absl::Seconds(2), .max = absl::Seconds(8)}};
};

struct CopierOptions {
  const FileLayout* layout = nullptr;                           // outlives it
  using Stores = std::shared_ptr<const artifacts::StoreTable>;  // shared: by executors
  Stores stores;                                                // null = there are none
  std::function<void(const AttemptKey&)> on_idle;  // nothing of the attempt is on its way any more
  std::function<void(const ExperimentKey&)> on_removed;
  CopyRetries retries = {};
};

class CheckpointCopier {
 public:
  explicit CheckpointCopier(CopierOptions options);
  ~CheckpointCopier() { End(); }
  // Waits for what is being removed, for up to ten seconds; interrupts what is under way then.
  void End();

  // What the experiment's specification says.
  void SetPolicy(const ExperimentKey& key, const v1::ArtifactPolicy& policy);
  // Whether its attempts may start: kInvalidArgument, with field and fix, if the store that it
  // names is none of its namespace's.
  Status Check(const ExperimentKey& key) const;

  // It is committed: copies it soon, if the experiment wants that. Once is enough.
  void Copy(const v1::Checkpoint& checkpoint);
  // Its program has ended with exit code 0: copies its trial's outputs soon, if the experiment
  // wants that. Once is enough.
  void CopyOutputs(const AttemptKey& key);
  // Whether something of the attempt is on its way.
  bool Busy(const AttemptKey& key) const;
  v1::CopyState StateOf(const v1::Checkpoint& checkpoint) const;
  // What became of its checkpoints and outputs, in words.
  void Describe(AttemptStatus& observed) const;
  // What is on its way is not wanted any more.
  void Abandon(const AttemptKey& key);
  void Forget(const AttemptKey& key);

  // Whether its experiment has its checkpoints copied.
  bool MayHave(const v1::Checkpoint& checkpoint) const;
  // Brings a checkpoint back, into this directory. kNotFound if the experiment copies none, or if
  // it is not there; else as CopyIn.
  Status Fetch(const v1::Checkpoint& checkpoint, const std::string& checkpoint_dir);

  // Removes the copy of one, or all of an experiment, soon.
  void Prune(const v1::Checkpoint& checkpoint);
  void RemoveAllOf(const ExperimentKey& key, const v1::ArtifactPolicy& policy);
  bool IsRemoving(const ExperimentKey& key) const;

 private:
  struct TrackedCopies {
    std::stop_source stop;
    std::set<int64_t> announced;            // steps
    std::set<int64_t> copied;               // of these
    std::map<int64_t, std::string> failed;  // why
    std::set<int64_t> pruned;               // while they were on their way
    std::set<int64_t> under_way;
    std::optional<v1::Checkpoint> outputs;  // kOutputsStep stands for them in the sets above
    std::string outputs_failed;
  };
  struct Target {
    std::shared_ptr<artifacts::ArtifactStore> store;  // shared: with the table
    std::string shown;                                // the store's name
    std::string prefix;
  };

  StatusOr<Target> TargetOf(const std::string& ns, const v1::ArtifactPolicy& policy) const;
  std::optional<v1::ArtifactPolicy> PolicyOf(const ExperimentKey& key) const;
  Status CopyNow(const v1::Checkpoint& checkpoint, const v1::ArtifactPolicy& policy,
                 const std::stop_token& stop) const;
  void FinishCopy(const v1::Checkpoint& checkpoint, const Status& status);
  // False if the step was announced before.
  bool Announce(const AttemptKey& key, int64_t step, std::stop_token* stop);
  StatusOr<v1::Checkpoint> CopyOutputsNow(const AttemptKey& key, const v1::ArtifactPolicy& policy,
                                          const std::stop_token& stop) const;
  void FinishOutputs(const AttemptKey& key, const StatusOr<v1::Checkpoint>& outputs);
  void Remove(const v1::Checkpoint& checkpoint, const v1::ArtifactPolicy& policy);
  // Does it in a thread for removals.
  void RunRemoval(std::function<void()> removal);
  Status RemoveNow(const ExperimentKey& key, const v1::ArtifactPolicy& policy) const;

  const CopierOptions options_;
  std::stop_source stop_;
  mutable Mutex mutex_;
  std::map<ExperimentKey, v1::ArtifactPolicy> policies_ ABSL_GUARDED_BY(mutex_);
  std::map<AttemptKey, TrackedCopies> attempts_ ABSL_GUARDED_BY(mutex_);
  std::set<ExperimentKey> removing_ ABSL_GUARDED_BY(mutex_);
  int removals_under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  CondVar removed_;
  // Last, because their threads use all of the above. Removals wait for no copy.
  TaskPool copies_;
  TaskPool removals_;
};

}  // namespace shirabe::trial
