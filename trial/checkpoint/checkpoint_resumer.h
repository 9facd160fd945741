// From the checkpoints that an attempt may go on from to the one that it does: the newest that
// proves intact, copied into the attempt's own directory before its program starts. What became of
// it stands in the attempt's directory, in resumed.json, so that a restart of ours knows it too.
// Called by an executor; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "base/task_pool.h"
#include "trial/attempt_status.h"
#include "trial/checkpoint/checkpoint_copier.h"
#include "trial/checkpoint/checkpoint_store.h"

namespace shirabe::trial {

struct Resume {
  std::optional<v1::Checkpoint> from;   // nullopt = from the beginning
  std::vector<v1::Checkpoint> damaged;  // newer ones; `gone` says why they are not usable
};

// Of resumed.json; the defaults if there is none, or none that can be read.
Resume ReadResume(const std::string& attempt_dir);

class Resumer {
 public:
  using OnReady = std::function<void(const AttemptKey&)>;

  struct Parts {
    const FileLayout* layout = nullptr;
    const CheckpointStore* store = nullptr;
    CheckpointCopier* copier = nullptr;  // of what is gone here; null = there are no copies
    TaskPool* background = nullptr;      // is destroyed first
  };
  // `on_ready` is called in threads of the background.
  Resumer(const Parts& parts, OnReady on_ready);

  // The value of SHIRABE_RESUME_FROM: a path, or "" for the beginning. kUnavailable: not yet.
  // Either a large checkpoint is being verified, or one that is gone here is brought from the store
  // that has its copy, and on_ready follows; or the disk does not answer
  // or is full, and the next call tries again. A second call costs nothing until Forget.
  StatusOr<std::string> Prepare(const AttemptRequest& request);

  // It has started, or never will.
  void Forget(const AttemptKey& key);
  // Whether one is being copied for an attempt of the experiment, or of the trial if it is not 0.
  bool Busy(const ExperimentKey& experiment, int64_t trial) const;

 private:
  struct Task {
    AttemptKey key;
    std::vector<v1::Checkpoint> candidates;
    Resume resume;      // what is known so far
    bool busy = false;  // else `answer` is the one
    StatusOr<std::string> answer = std::string();
  };

  std::optional<StatusOr<std::string>> FindAnswer(const Task& task);
  Status VerifyInBackground(Task task);
  // True if the answer is known; false if what comes next is too much for the caller's thread.
  bool Advance(Task& task, bool patient) const;
  void FetchCopy(const v1::Checkpoint& checkpoint, Task& task) const;
  void Finish(Task task);

  const Parts parts_;
  const OnReady on_ready_;
  mutable Mutex mutex_;
  std::map<AttemptKey, Task> tasks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::trial
