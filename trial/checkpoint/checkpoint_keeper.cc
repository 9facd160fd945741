#include "trial/checkpoint/checkpoint_keeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/timestamp.h"

namespace shirabe::trial {
namespace {

constexpr std::chrono::milliseconds kTick(500);
constexpr size_t kThreads = 4;     // of each lane
constexpr int kMaxPauseShift = 6;  // 64 ticks: half a minute
constexpr int kFinalLooks = 4;     // three and a half seconds
// In place of a step: the directory could not be read, or nothing in it has the name of a step.
constexpr int64_t kListing = -1;
constexpr int64_t kNaming = -2;

std::string Words(int64_t step, const Status& status) {
  if (step == kListing) return "the checkpoints cannot be listed: " + Message(status);
  return absl::StrCat("the checkpoint at step ", step, " cannot be committed: ", Message(status));
}

// What is shown of an attempt whose program has ended, but not its saving.
void ShowRunning(Sighting& sighting) {
  sighting.state = Sighting::State::kRunning;
  sighting.exit_code.reset();
  sighting.signal = 0;
  sighting.out_of_memory = false;
  sighting.message.clear();
  sighting.placement.clear_end_time();
}

}  // namespace

CheckpointKeeper::CheckpointKeeper(const Layout* layout, Clock* clock, OnChange on_change)
    : layout_(layout),
      clock_(clock),
      on_change_(std::move(on_change)),
      store_(layout, &stop_),
      resumer_(layout, &store_, &resumes_,
               [this](const AttemptKey& key) { on_change_(key.trial.experiment); }),
      quick_(kThreads),
      bulk_(kThreads),
      resumes_(kThreads) {}

CheckpointKeeper::~CheckpointKeeper() { stop_ = true; }

// ---- what the executor tells --------------------------------------------------------------------

void CheckpointKeeper::Watch(const AttemptKey& key) {
  {
    std::lock_guard lock(mutex_);
    if (kept_.count(key) > 0) return;
  }
  Kept kept;
  kept.resume = ReadResume(layout_->Paths(key).dir);
  resumer_.Forget(key);
  std::lock_guard lock(mutex_);
  kept_.emplace(key, std::move(kept));
  if (ticker_.joinable()) {
    changed_.notify_one();
  } else {
    ticker_ = std::jthread([this](const std::stop_token& stop) { Loop(stop); });
  }
}

void CheckpointKeeper::End(const AttemptKey& key) {
  Watch(key);
  {
    std::lock_guard lock(mutex_);
    Kept* kept = Find(key);
    if (kept == nullptr || kept->ended) return;
    kept->ended = true;
    kept->pause = 0;
    if (kept->busy) return;  // it looks again before it is done
    kept->busy = true;
  }
  // Nearly always there is nothing new, and the end is told without another thread.
  const auto fresh = Fresh(key);
  if (fresh.ok() && fresh->empty() && Settle(key, /*saw_end=*/true)) return;
  quick_.Run([this, key] { Work(key, Lane::kQuick); });
}

void CheckpointKeeper::Abandon(const AttemptKey& key) {
  std::lock_guard lock(mutex_);
  if (Kept* kept = Find(key)) *kept->cancel = true;
}

void CheckpointKeeper::Describe(Sighting& sighting) const {
  std::lock_guard lock(mutex_);
  const auto found = kept_.find(sighting.key);
  if (found == kept_.end()) return;
  const Kept& kept = found->second;
  sighting.resumed = kept.resume.from;
  sighting.damaged = kept.resume.damaged;
  for (const auto& [step, checkpoint] : kept.committed) sighting.checkpoints.push_back(checkpoint);
  if (sighting.state == Sighting::State::kRunning) return;
  if (!kept.complete) return ShowRunning(sighting);
  for (const auto& [step, failure] : kept.failures) sighting.refused.push_back(failure.message);
}

void CheckpointKeeper::Forget(const AttemptKey& key) {
  resumer_.Forget(key);
  std::lock_guard lock(mutex_);
  const auto found = kept_.find(key);
  if (found == kept_.end()) return;
  *found->second.cancel = true;
  kept_.erase(found);
}

void CheckpointKeeper::Prune(const v1::Checkpoint& checkpoint) {
  quick_.Run([this, checkpoint] {
    const Status status = store_.Prune(checkpoint);
    if (status.ok()) return;
    Log(LogLevel::kWarning, "a checkpoint that nobody needs could not be deleted",
        {{"checkpoint", checkpoint.location()}, {"error", Message(status)}});
  });
}

// ---- looking ------------------------------------------------------------------------------------

CheckpointKeeper::Kept* CheckpointKeeper::Find(const AttemptKey& key) {
  const auto found = kept_.find(key);
  return found == kept_.end() ? nullptr : &found->second;
}

void CheckpointKeeper::Loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, stop, [this] { return !kept_.empty(); });
    changed_.wait_for(lock, stop, kTick, [] { return false; });
    if (stop.stop_requested()) return;
    lock.unlock();
    Tick();
    lock.lock();
  }
}

// Only looks; whatever has news is handed to the threads that may take long.
void CheckpointKeeper::Tick() {
  for (const AttemptKey& key : Due()) {
    const auto fresh = Fresh(key);
    if (!fresh.ok() || !fresh->empty()) Hand(key);
  }
}

std::vector<AttemptKey> CheckpointKeeper::Due() {
  std::vector<AttemptKey> due;
  std::lock_guard lock(mutex_);
  for (auto& [key, kept] : kept_) {
    if (kept.complete || kept.busy) continue;
    if (kept.pause > 0) --kept.pause;
    const bool waits = kept.ended || kept.failures.count(kListing) > 0;
    if (!waits || kept.pause == 0) due.push_back(key);
  }
  return due;
}

void CheckpointKeeper::Hand(const AttemptKey& key) {
  {
    std::lock_guard lock(mutex_);
    Kept* kept = Find(key);
    if (kept == nullptr || kept->busy || kept->complete) return;
    kept->busy = true;
  }
  quick_.Run([this, key] { Work(key, Lane::kQuick); });
}

// The steps that are to be committed now. What the attempt was started from is none of them, unless
// its program has put another one in its place.
StatusOr<std::vector<int64_t>> CheckpointKeeper::Fresh(const AttemptKey& key) {
  auto steps = store_.List(key);
  if (absl::IsNotFound(steps.status())) steps = std::vector<int64_t>();  // removed, whole
  RETURN_IF_ERROR(steps.status());
  std::optional<v1::Checkpoint> fork;
  {
    std::lock_guard lock(mutex_);
    Kept* kept = Find(key);
    if (kept == nullptr) return std::vector<int64_t>();
    // The program may have removed what could not be committed.
    std::erase_if(kept->failures, [&](const auto& failure) {
      return !std::binary_search(steps->begin(), steps->end(), failure.first);
    });
    std::erase_if(*steps, [&](int64_t step) {
      const bool later = kept->pause > 0 && kept->failures.count(step) > 0;
      return later || kept->committed.count(step) > 0;
    });
    fork = kept->resume.from;
    if (fork && !kept->ended) std::erase(*steps, fork->step());
  }
  const bool stands = fork && std::count(steps->begin(), steps->end(), fork->step()) > 0;
  if (stands && store_.HoldsFork(*fork, key)) std::erase(*steps, fork->step());
  return steps;
}

// ---- committing ---------------------------------------------------------------------------------

bool CheckpointKeeper::AnyLarge(const AttemptKey& key, const std::vector<int64_t>& steps) const {
  return std::any_of(steps.begin(), steps.end(),
                     [&](int64_t step) { return store_.IsLarge(key, step); });
}

void CheckpointKeeper::Work(const AttemptKey& key, Lane lane) {
  bool saw_end = false;
  do {
    {
      std::lock_guard lock(mutex_);
      const Kept* kept = Find(key);
      if (kept == nullptr || stop_) return;
      saw_end = kept->ended;
    }
    const auto fresh = Fresh(key);
    if (fresh.ok() && lane == Lane::kQuick && AnyLarge(key, *fresh)) {
      return bulk_.Run([this, key] { Work(key, Lane::kBulk); });
    }
    if (fresh.ok()) {
      for (const int64_t step : *fresh) CommitOne(key, step);
    } else {
      std::lock_guard lock(mutex_);
      if (Kept* kept = Find(key)) kept->failures[kListing] = {Words(kListing, fresh.status())};
    }
  } while (!Settle(key, saw_end));
  on_change_(key.trial.experiment);
}

void CheckpointKeeper::CommitOne(const AttemptKey& key, int64_t step) {
  Kept::Flag cancel;
  {
    std::lock_guard lock(mutex_);
    const Kept* kept = Find(key);
    if (kept == nullptr) return;
    cancel = kept->cancel;
  }
  auto checkpoint = store_.Commit(key, step, cancel.get());
  const Status status = checkpoint.status();
  {
    std::lock_guard lock(mutex_);
    Kept* kept = Find(key);
    if (kept == nullptr || stop_) return;
    if (absl::IsCancelled(status)) {
      kept->failures[step] = {Words(step, absl::CancelledError("its attempt was ended at once")),
                              /*final=*/true};
      return;
    }
    if (!status.ok() && !absl::IsNotFound(status)) {
      kept->failures[step] = {Words(step, status), absl::IsInvalidArgument(status)};
      return;
    }
    kept->failures.erase(step);
    if (!status.ok()) return;  // the program has removed it
    // The disk's clock may be another one, and must not tell of the future.
    const absl::Time saved = std::min(FromProto(checkpoint->time()), clock_->Now());
    *checkpoint->mutable_time() = ToProto(saved);
    kept->committed[step] = *std::move(checkpoint);
  }
  on_change_(key.trial.experiment);
}

// After a look. False if the program has ended since it began, so that another one is due at once.
bool CheckpointKeeper::Settle(const AttemptKey& key, bool saw_end) {
  {
    std::lock_guard lock(mutex_);
    Kept* kept = Find(key);
    if (kept == nullptr) return true;
    if (kept->ended && !saw_end) return false;
    kept->busy = false;
    kept->failed_looks = kept->failures.empty() ? 0 : kept->failed_looks + 1;
    kept->pause = kept->failed_looks == 0 ? 0 : 1 << std::min(kept->failed_looks, kMaxPauseShift);
    if (!kept->ended) return true;
    const bool hope = std::any_of(kept->failures.begin(), kept->failures.end(),
                                  [](const auto& failure) { return !failure.second.final; });
    if (hope && ++kept->final_looks < kFinalLooks) {
      kept->pause = 1 << (kept->final_looks - 1);
      return true;
    }
  }
  Complete(key);
  return true;
}

// All is known. The copy that the attempt was started from goes: its original stays where it is.
void CheckpointKeeper::Complete(const AttemptKey& key) {
  std::optional<v1::Checkpoint> fork;
  const std::string misnamed = store_.Misnamed(key);
  {
    std::lock_guard lock(mutex_);
    Kept* kept = Find(key);
    if (kept == nullptr) return;
    kept->complete = true;
    if (!misnamed.empty() && kept->committed.empty()) {
      kept->failures[kNaming] = {
          absl::StrCat("\"", misnamed,
                       "\" is not taken for a checkpoint: only a folder whose name is its step, ",
                       "as 500, is one")};
    }
    fork = kept->resume.from;
  }
  if (fork && store_.HoldsFork(*fork, key)) {
    fork->set_namespace_(key.trial.experiment.ns);
    fork->set_experiment(key.trial.experiment.name);
    fork->set_trial(key.trial.number);
    fork->set_attempt(key.number);
    Prune(*fork);
  }
}

}  // namespace shirabe::trial
