// Commits what running attempts save, in threads of its own, and everything else that an executor
// does about checkpoints beside its files. It looks into each directory about twice a second, and
// once more when the program has ended; an end with nothing new costs one readdir, and is told at
// once. What cannot be committed, for want of space or because the disk fails, is tried again,
// less and less often, and a few times more after the end; no attempt waits for another's disk.
// Owned by an executor; thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/task_pool.h"
#include "trial/attempt_status.h"
#include "trial/checkpoint/checkpoint_copier.h"
#include "trial/checkpoint/checkpoint_resumer.h"
#include "trial/checkpoint/checkpoint_store.h"

namespace shirabe::trial {

// Where checkpoints are copied to, and how long that is tried.
struct CommitterCopies {
  using Stores = std::shared_ptr<const artifacts::StoreTable>;  // shared: by executors
  Stores stores = nullptr;                                      // null = none
  CopyRetries retries = {};
};

class CheckpointCommitter {
 public:
  using OnChange = std::function<void(const ExperimentKey&)>;

  // `layout` and `clock` outlive it. `on_change` is called from any thread and never under a lock.
  CheckpointCommitter(const FileLayout* layout, Clock* clock, OnChange on_change,
                      CommitterCopies copies = {});
  // Interrupts what is under way.
  ~CheckpointCommitter();

  // Before its program starts: see Resumer.
  StatusOr<std::string> Prepare(const AttemptRequest& request) { return resumer_.Prepare(request); }
  // Copies of checkpoints elsewhere: see CheckpointCopier.
  CheckpointCopier& copier() { return copier_; }

  // Its program runs, or has ended. An attempt is announced by either, and both may come again.
  void Watch(const AttemptKey& key);
  void End(const AttemptKey& key);
  // It is ended without grace: what it has saved and is not committed yet stays so.
  void Abandon(const AttemptKey& key);
  // Writes down what is known of its checkpoints. One that has ended is shown as running until all
  // that it saved is committed, and copied, or given up.
  void Describe(AttemptStatus& observed) const;
  void Forget(const AttemptKey& key);

  // Whether a checkpoint is being copied for an attempt of the experiment, or of the trial.
  bool Busy(const ExperimentKey& experiment, int64_t trial) const {
    return resumer_.Busy(experiment, trial);
  }
  // Soon.
  void Prune(const v1::Checkpoint& checkpoint);

 private:
  struct Failure {
    std::string message;
    bool final = false;  // to try again would not help
  };
  struct TrackedAttempt {
    Resume resume;
    // Once true, nothing more is committed.
    using Flag = std::shared_ptr<std::atomic<bool>>;  // shared: a commit may outlive this
    Flag cancel = std::make_shared<std::atomic<bool>>(false);
    std::map<int64_t, v1::Checkpoint> committed;  // by step
    std::map<int64_t, Failure> failures;          // by step, or of kListing
    bool ended = false;                           // its program has
    bool complete = false;                        // and nothing is left to be done
    bool busy = false;                            // a thread is at it
    int failed_scans = 0;                         // in a row
    int final_scans = 0;                          // since it ended
    int pause = 0;                                // ticks until failures are tried again
  };

  void Loop(const std::stop_token& stop);
  void Tick();
  std::vector<AttemptKey> Due();
  void Dispatch(const AttemptKey& key);
  enum class Lane { kQuick, kBulk };
  void Work(const AttemptKey& key, Lane lane);
  bool AnyLarge(const AttemptKey& key, const std::vector<int64_t>& steps) const;
  StatusOr<std::vector<int64_t>> Fresh(const AttemptKey& key);
  void CommitOne(const AttemptKey& key, int64_t step);
  bool FinishLook(const AttemptKey& key, bool saw_end);
  void Complete(const AttemptKey& key);
  TrackedAttempt* Find(const AttemptKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FileLayout* const layout_;
  Clock* const clock_;
  const OnChange on_change_;
  std::atomic<bool> stop_ = false;
  const CheckpointStore store_;
  CheckpointCopier copier_;
  Resumer resumer_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<AttemptKey, TrackedAttempt> tracked_ ABSL_GUARDED_BY(mutex_);
  // Last, because their threads use all of the above. What is large waits for what is large, and
  // nothing else waits for it: neither another's small checkpoint nor one that is resumed from.
  TaskPool quick_;
  TaskPool bulk_;
  TaskPool resumes_;
  std::jthread ticker_ ABSL_GUARDED_BY(mutex_);  // it runs once something is kept
};

}  // namespace shirabe::trial
