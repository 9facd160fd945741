#include "experiment/unowned_experiments.h"

#include <utility>

#include "absl/time/time.h"
#include "base/log.h"
#include "db/commit_rules.h"
#include "experiment/conditions.h"

namespace shirabe::experiment {
namespace {

void StopStray(const AttemptKey& key, trial::Executor& executor) {
  Log(LogLevel::kWarning, "stopping a program whose attempt another owner has ended",
      {{"attempt", AttemptName(key)}});
  executor.Stop(key, v1::USER, absl::ZeroDuration()).IgnoreError();  // tried again
}

// Of one attempt, if the store has it.
StatusOr<std::vector<db::Versioned<v1::Attempt>>> RecordOf(const AttemptKey& key,
                                                           db::Store& store) {
  ASSIGN_OR_RETURN(auto attempts, store.ListAttempts({.experiment = key.trial.experiment,
                                                      .trial = key.trial.number,
                                                      .after_trial = key.trial.number,
                                                      .after_number = key.number - 1,
                                                      .limit = 1}));
  if (!attempts.empty() && attempts[0].record.number() != key.number) attempts.clear();
  return attempts;
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
  if (!std::exchange(searched_, true)) StopFound(executor);
  std::set<ExperimentKey> reported, lost;
  {
    const MutexLock lock(mutex_);
    reported = std::exchange(reported_, {});
    lost = lost_;
  }
  for (const ExperimentKey& key : lost) {
    if (StopLost(key, executor)) continue;
    const MutexLock lock(mutex_);
    lost_.erase(key);
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

// Only those of which the store says that they have ended: others may be of another process, with
// another store, or wait for their owner.
void UnownedExperiments::StopFound(trial::Executor& executor) {
  for (const AttemptKey& key : executor.FindPrograms()) {
    const auto found = RecordOf(key, *store_);
    if (!found.ok() || found->empty() || db::IsOpen(found->front().record)) continue;
    executor.Adopt({found->front().record});
    StopStray(key, executor);
  }
}

// True if something of it still runs.
bool UnownedExperiments::StopLost(const ExperimentKey& key, trial::Executor& executor) {
  bool runs = false;
  for (const trial::AttemptStatus& observed : executor.Observe(key)) {
    if (observed.state != trial::AttemptStatus::State::kRunning) {
      executor.Forget(observed.key);
      continue;
    }
    runs = true;
    const auto found = RecordOf(observed.key, *store_);
    if (!found.ok()) continue;
    if (found->empty() || !db::IsOpen(found->front().record)) StopStray(observed.key, executor);
  }
  return runs;
}

}  // namespace shirabe::experiment
