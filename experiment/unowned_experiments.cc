#include "experiment/unowned_experiments.h"

#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/log.h"
#include "db/commit_rules.h"
#include "experiment/conditions.h"
#include "experiment/pass_follow_up.h"

namespace shirabe::experiment {
namespace {

constexpr int kSearchEvery = 12;  // calls: once a minute, and at the first

// None of an experiment that was deleted.
StatusOr<std::set<AttemptKey>> OpenAttempts(const ExperimentKey& key, db::Store& store) {
  std::set<AttemptKey> open;
  const auto experiment = store.GetExperiment(key);
  if (absl::IsNotFound(experiment.status())) return open;
  RETURN_IF_ERROR(experiment.status());
  ASSIGN_OR_RETURN(const auto attempts, store.ListAttempts({.experiment = key, .open_only = true}));
  for (const auto& [attempt, revision] : attempts) {
    open.insert({{key, attempt.trial()}, attempt.number()});
  }
  const auto follow_up = OpenAttemptOf(experiment->record.status().shirabe().on_success());
  if (follow_up) open.insert({{key, kFollowUpNumber}, follow_up->number()});
  return open;
}

// The record of an attempt that has ended.
std::optional<v1::Attempt> FindEndedAttempt(const AttemptKey& key, db::Store& store) {
  const auto found = store.ListAttempts({.experiment = key.trial.experiment,
                                         .trial = key.trial.number,
                                         .after_trial = key.trial.number,
                                         .after_number = key.number - 1,
                                         .limit = 1});
  if (!found.ok() || found->empty()) return std::nullopt;
  const v1::Attempt& attempt = found->front().record;
  if (attempt.number() != key.number || db::IsOpen(attempt)) return std::nullopt;
  return attempt;
}

// True if something of it still runs.
StatusOr<bool> StopEnded(const ExperimentKey& key, db::Store& store, trial::Executor& executor) {
  // First what runs: an attempt is stored before it starts, should it be owned here by now.
  const std::vector<trial::AttemptStatus> all = executor.Observe(key);
  ASSIGN_OR_RETURN(const std::set<AttemptKey> open, OpenAttempts(key, store));
  bool runs = false;
  for (const trial::AttemptStatus& observed : all) {
    if (observed.state != trial::AttemptStatus::State::kRunning) {
      executor.Forget(observed.key);
      continue;
    }
    runs = true;
    if (open.contains(observed.key)) continue;
    Log(LogLevel::kWarning, "stopping a program whose attempt another owner has ended",
        {{"attempt", AttemptName(observed.key)}});
    executor.Stop(observed.key, v1::USER, absl::ZeroDuration()).IgnoreError();  // tried again
  }
  return runs;
}

}  // namespace

void UnownedExperiments::AddReported(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  reported_.insert(key);
}

void UnownedExperiments::AddLost(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  lost_.insert(key);
}

void UnownedExperiments::Remove(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  reported_.erase(key);
  lost_.erase(key);
}

std::vector<ExperimentKey> UnownedExperiments::ClearUp(trial::Executor& executor) {
  if (calls_++ % kSearchEvery == 0) {
    executor.StopStrays([this](const AttemptKey& key) { return FindEndedAttempt(key, *store_); });
  }
  StopLost(executor);
  std::set<ExperimentKey> reported;
  {
    const MutexLock lock(mutex_);
    reported = std::exchange(reported_, {});
  }
  std::vector<ExperimentKey> ended;
  for (const ExperimentKey& key : reported) {
    const auto experiment = store_->GetExperiment(key);
    if (absl::IsNotFound(experiment.status())) {
      executor.RemoveFiles(key, 0).IgnoreError();  // what is left is reported again
    } else if (experiment.ok() && IsEnded(experiment->record)) {
      ended.push_back(key);
    }
  }
  return ended;
}

// Until the first error of the store, which the others would wait for, too.
void UnownedExperiments::StopLost(trial::Executor& executor) {
  std::set<ExperimentKey> lost;
  {
    const MutexLock lock(mutex_);
    lost = lost_;
  }
  for (const ExperimentKey& key : lost) {
    const auto runs = StopEnded(key, *store_, executor);
    if (!runs.ok()) return;
    const MutexLock lock(mutex_);
    if (!*runs) lost_.erase(key);
  }
}

}  // namespace shirabe::experiment
