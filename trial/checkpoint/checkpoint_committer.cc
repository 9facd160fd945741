#include "trial/checkpoint/checkpoint_committer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/timestamp.h"
#include "trial/checkpoint/checkpoint_folder.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(500);
constexpr size_t kThreads = 4;     // of each lane
constexpr int kMaxPauseShift = 6;  // 64 ticks: half a minute
constexpr int kFinalScans = 4;     // three and a half seconds
// In place of a step: the directory could not be read, or nothing in it has the name of a step.
constexpr int64_t kListing = -1;
constexpr int64_t kNaming = -2;

std::string Words(int64_t step, const Status& status) {
  if (step == kListing) return "the checkpoints cannot be listed: " + Message(status);
  return absl::StrCat("the checkpoint at step ", step, " cannot be committed: ", Message(status));
}

// What is shown of an attempt whose program has ended, but not its saving.
void ShowRunning(AttemptStatus& observed) {
  observed.state = AttemptStatus::State::kRunning;
  observed.exit_code.reset();
  observed.signal = 0;
  observed.out_of_memory = false;
  observed.message.clear();
  observed.placement.clear_end_time();
}

}  // namespace

CheckpointCommitter::CheckpointCommitter(const FileLayout* layout, Clock* clock, OnChange on_change,
                                         CommitterCopies copies)
    : layout_(layout),
      clock_(clock),
      on_change_(std::move(on_change)),
      store_(layout, &stop_),
      copier_({.layout = layout,
               .stores = std::move(copies.stores),
               .on_idle = [this](const AttemptKey& key) { Dispatch(key); },
               .on_removed = [this](const ExperimentKey& key) { on_change_(key); },
               .retries = copies.retries}),
      resumer_({.layout = layout, .store = &store_, .copier = &copier_, .background = &resumes_},
               [this](const AttemptKey& key) { on_change_(key.trial.experiment); }),
      quick_(kThreads),
      bulk_(kThreads),
      resumes_(kThreads) {}

CheckpointCommitter::~CheckpointCommitter() {
  stop_ = true;
  copier_.End();  // its threads use the pools
}

// ---- what the executor tells --------------------------------------------------------------------

void CheckpointCommitter::Watch(const AttemptKey& key) {
  {
    const MutexLock lock(mutex_);
    if (tracked_.count(key) > 0) return;
  }
  TrackedAttempt tracked;
  tracked.resume = ReadResume(layout_->Paths(key).dir);
  resumer_.Forget(key);
  const MutexLock lock(mutex_);
  tracked_.emplace(key, std::move(tracked));
  if (ticker_.joinable()) {
    changed_.NotifyOne();
  } else {
    ticker_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
  }
}

void CheckpointCommitter::End(const AttemptKey& key) {
  Watch(key);
  {
    const MutexLock lock(mutex_);
    TrackedAttempt* tracked = Find(key);
    if (tracked == nullptr || tracked->ended) return;
    tracked->ended = true;
    tracked->pause = 0;
    if (tracked->busy) return;  // it looks again before it is done
    tracked->busy = true;
  }
  // Nearly always there is nothing new, and the end is told without another thread.
  const auto fresh = Fresh(key);
  if (fresh.ok() && fresh->empty() && FinishLook(key, /*saw_end=*/true)) return;
  quick_.Run([this, key] { Work(key, Lane::kQuick); });
}

void CheckpointCommitter::Abandon(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  if (TrackedAttempt* tracked = Find(key)) *tracked->cancel = true;
  copier_.Abandon(key);
}

void CheckpointCommitter::Describe(AttemptStatus& observed) const {
  const MutexLock lock(mutex_);
  const auto found = tracked_.find(observed.key);
  if (found == tracked_.end()) return;
  const TrackedAttempt& tracked = found->second;
  observed.resumed = tracked.resume.from;
  observed.damaged = tracked.resume.damaged;
  for (const auto& [step, checkpoint] : tracked.committed) {
    observed.checkpoints.push_back(checkpoint);
    observed.checkpoints.back().set_copy(copier_.StateOf(checkpoint));
  }
  if (observed.state == AttemptStatus::State::kRunning) return;
  if (!tracked.complete) return ShowRunning(observed);
  for (const auto& [step, failure] : tracked.failures) observed.refused.push_back(failure.message);
  copier_.Describe(observed);
}

void CheckpointCommitter::Forget(const AttemptKey& key) {
  resumer_.Forget(key);
  copier_.Forget(key);
  const MutexLock lock(mutex_);
  const auto found = tracked_.find(key);
  if (found == tracked_.end()) return;
  *found->second.cancel = true;
  tracked_.erase(found);
}

void CheckpointCommitter::Prune(const v1::Checkpoint& checkpoint) {
  quick_.Run([this, checkpoint] {
    const Status status = store_.Prune(checkpoint);
    if (status.ok()) return;
    Log(LogLevel::kWarning, "failed to delete an unneeded checkpoint",
        {{"checkpoint", checkpoint.location()}, {"error", Message(status)}});
  });
}

// ---- looking ------------------------------------------------------------------------------------

CheckpointCommitter::TrackedAttempt* CheckpointCommitter::Find(const AttemptKey& key) {
  const auto found = tracked_.find(key);
  return found == tracked_.end() ? nullptr : &found->second;
}

void CheckpointCommitter::Loop(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.Wait(lock, stop,
                  [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !tracked_.empty(); });
    changed_.SleepFor(lock, stop, kTick);
    if (stop.stop_requested()) return;
    lock.unlock();
    Tick();
    lock.lock();
  }
}

// Only looks; whatever has news is handed to the threads that may take long.
void CheckpointCommitter::Tick() {
  for (const AttemptKey& key : Due()) {
    const auto fresh = Fresh(key);
    if (!fresh.ok() || !fresh->empty()) Dispatch(key);
  }
}

std::vector<AttemptKey> CheckpointCommitter::Due() {
  std::vector<AttemptKey> due;
  const MutexLock lock(mutex_);
  for (auto& [key, tracked] : tracked_) {
    if (tracked.complete || tracked.busy) continue;
    if (tracked.pause > 0) --tracked.pause;
    const bool waits = tracked.ended || tracked.failures.count(kListing) > 0;
    if (!waits || tracked.pause == 0) due.push_back(key);
  }
  return due;
}

void CheckpointCommitter::Dispatch(const AttemptKey& key) {
  {
    const MutexLock lock(mutex_);
    TrackedAttempt* tracked = Find(key);
    if (tracked == nullptr || tracked->busy || tracked->complete) return;
    tracked->busy = true;
  }
  quick_.Run([this, key] { Work(key, Lane::kQuick); });
}

// The steps that are to be committed now. What the attempt was started from is none of them, unless
// its program has put another one in its place.
StatusOr<std::vector<int64_t>> CheckpointCommitter::Fresh(const AttemptKey& key) {
  auto steps = store_.List(key);
  if (absl::IsNotFound(steps.status())) steps = std::vector<int64_t>();  // removed, whole
  RETURN_IF_ERROR(steps.status());
  std::optional<v1::Checkpoint> fork;
  {
    const MutexLock lock(mutex_);
    TrackedAttempt* tracked = Find(key);
    if (tracked == nullptr) return std::vector<int64_t>();
    // The program may have removed what could not be committed.
    std::erase_if(tracked->failures, [&](const auto& failure) {
      return !std::binary_search(steps->begin(), steps->end(), failure.first);
    });
    std::erase_if(*steps, [&](int64_t step) {
      const bool later = tracked->pause > 0 && tracked->failures.count(step) > 0;
      return later || tracked->committed.count(step) > 0;
    });
    fork = tracked->resume.from;
    if (fork && !tracked->ended) std::erase(*steps, fork->step());
  }
  const bool stands = fork && std::count(steps->begin(), steps->end(), fork->step()) > 0;
  if (stands && store_.HoldsFork(*fork, key)) std::erase(*steps, fork->step());
  return steps;
}

// ---- committing ---------------------------------------------------------------------------------

bool CheckpointCommitter::AnyLarge(const AttemptKey& key, const std::vector<int64_t>& steps) const {
  return std::any_of(steps.begin(), steps.end(),
                     [&](int64_t step) { return store_.IsLarge(key, step); });
}

void CheckpointCommitter::Work(const AttemptKey& key, Lane lane) {
  bool saw_end = false;
  do {
    {
      const MutexLock lock(mutex_);
      const TrackedAttempt* tracked = Find(key);
      if (tracked == nullptr || stop_) return;
      saw_end = tracked->ended;
    }
    const auto fresh = Fresh(key);
    if (fresh.ok() && lane == Lane::kQuick && AnyLarge(key, *fresh)) {
      return bulk_.Run([this, key] { Work(key, Lane::kBulk); });
    }
    if (fresh.ok()) {
      for (const int64_t step : *fresh) CommitOne(key, step);
    } else {
      const MutexLock lock(mutex_);
      if (TrackedAttempt* tracked = Find(key))
        tracked->failures[kListing] = {Words(kListing, fresh.status())};
    }
  } while (!FinishLook(key, saw_end));
  on_change_(key.trial.experiment);
}

void CheckpointCommitter::CommitOne(const AttemptKey& key, int64_t step) {
  TrackedAttempt::Flag cancel;
  {
    const MutexLock lock(mutex_);
    const TrackedAttempt* tracked = Find(key);
    if (tracked == nullptr) return;
    cancel = tracked->cancel;
  }
  auto checkpoint = store_.Commit(key, step, cancel.get());
  const Status status = checkpoint.status();
  {
    const MutexLock lock(mutex_);
    TrackedAttempt* tracked = Find(key);
    if (tracked == nullptr || stop_) return;
    if (absl::IsCancelled(status)) {
      tracked->failures[step] = {Words(step, absl::CancelledError("its attempt was ended at once")),
                                 /*final=*/true};
      return;
    }
    if (!status.ok() && !absl::IsNotFound(status)) {
      tracked->failures[step] = {Words(step, status), absl::IsInvalidArgument(status)};
      return;
    }
    tracked->failures.erase(step);
    if (!status.ok()) return;  // the program has removed it
    // The disk's clock may be another one, and must not tell of the future.
    const absl::Time saved = std::min(FromProto(checkpoint->time()), clock_->Now());
    *checkpoint->mutable_time() = ToProto(saved);
    tracked->committed[step] = *checkpoint;
  }
  copier_.Copy(*checkpoint);
  on_change_(key.trial.experiment);
}

// After a look. False if the program has ended since it began, so that another one is due at once.
bool CheckpointCommitter::FinishLook(const AttemptKey& key, bool saw_end) {
  {
    const MutexLock lock(mutex_);
    TrackedAttempt* tracked = Find(key);
    if (tracked == nullptr) return true;
    if (tracked->ended && !saw_end) return false;
    tracked->busy = false;
    tracked->failed_scans = tracked->failures.empty() ? 0 : tracked->failed_scans + 1;
    tracked->pause =
        tracked->failed_scans == 0 ? 0 : 1 << std::min(tracked->failed_scans, kMaxPauseShift);
    if (!tracked->ended) return true;
    const bool hope = std::any_of(tracked->failures.begin(), tracked->failures.end(),
                                  [](const auto& failure) { return !failure.second.final; });
    if (hope && ++tracked->final_scans < kFinalScans) {
      tracked->pause = 1 << (tracked->final_scans - 1);
      return true;
    }
  }
  // It is looked at again once its last copy is made or given up.
  if (!copier_.Busy(key)) Complete(key);
  return true;
}

// All is known. The copy that the attempt was started from goes: its original stays where it is.
void CheckpointCommitter::Complete(const AttemptKey& key) {
  std::optional<v1::Checkpoint> fork;
  const std::string misnamed = store_.FindMisnamed(key);
  {
    const MutexLock lock(mutex_);
    TrackedAttempt* tracked = Find(key);
    if (tracked == nullptr) return;
    tracked->complete = true;
    if (!misnamed.empty() && tracked->committed.empty()) {
      tracked->failures[kNaming] = {
          absl::StrCat("\"", misnamed,
                       "\" is not taken for a checkpoint: only a folder whose name is its step, ",
                       "as 500, is one")};
    }
    fork = tracked->resume.from;
  }
  if (fork && store_.HoldsFork(*fork, key)) {
    SetKey(key, *fork);
    Prune(*fork);
  }
}

}  // namespace shirabe::trial
