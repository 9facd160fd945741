#include "tests/simulation/tally.h"

#include <algorithm>

#include "experiment/conditions.h"
#include "experiment/state/retry_policy.h"
#include "experiment/submission.h"

namespace shirabe::simulation {
namespace {

void CountAttempt(const v1::Attempt& attempt, const Program* program, Tally& tally) {
  ++tally["attempts " + experiment::CauseWord(attempt.cause())];
  const v1::StopRequest& stop = attempt.stop();
  if (stop.cause() == v1::SUSPENDED && !stop.reason().empty()) ++tally["attempts given up"];
  if (program == nullptr) return;
  if (attempt.number() > 1) ++tally[program->from > 0 ? "resumed" : "restarted from 0"];
  tally["told late where they began"] += program->told_at > program->start;
  const bool parents = program->resumed && program->resumed->trial() != attempt.trial();
  if (parents) ++tally[attempt.number() == 1 ? "started from a parent" : "went back to the parent"];
  for (const v1::Checkpoint& damaged : program->damaged) {
    tally["parents' checkpoints found damaged"] += damaged.trial() != attempt.trial();
  }
  if (program->from > 0 && !program->damaged.empty()) ++tally["fell back to an older one"];
  if (program->from == program->training.steps) ++tally["done twice"];
  if (attempt.cause() == v1::EARLY_STOPPED) {
    if (program->done) ++tally["early stops of what was done"];
    if (program->platform != v1::CAUSE_NONE) ++tally["early stops of what was preempted"];
    if (attempt.number() > 1) ++tally["early stops after an earlier attempt"];
  }
  if (attempt.cause() == v1::COMPLETED && program->platform != v1::CAUSE_NONE) {
    ++tally["finished although noticed"];
  }
}

// What a program did after it was thought to be gone.
void CountZombie(const Program& program, Tally& tally) {
  const auto after = [&](absl::Duration at) { return at > program.lost_at; };
  if (std::any_of(program.reported.begin(), program.reported.end(), after)) {
    ++tally["zombies that reported"];
  }
  if (std::any_of(program.saves.begin(), program.saves.end(),
                  [&](const Save& save) { return after(save.at); })) {
    ++tally["zombies that saved"];
  }
}

void CountCheckpoints(const std::vector<db::Versioned<v1::Checkpoint>>& checkpoints, Tally& tally) {
  for (const auto& [checkpoint, revision] : checkpoints) {
    ++tally["checkpoints committed"];
    if (checkpoint.gone() == "pruned") {
      ++tally["checkpoints pruned"];
    } else if (!checkpoint.gone().empty()) {
      ++tally["checkpoints found damaged"];
    }
  }
}

}  // namespace

void Count(const ExperimentKey& key, db::Store& store, World& world, Tally& tally) {
  const auto attempts = store.ListAttempts({.experiment = key});
  std::map<int64_t, bool> spot;
  for (const auto& [attempt, revision] : *attempts) {
    const Program* program = world.Find({{key, attempt.trial()}, attempt.number()});
    CountAttempt(attempt, program, tally);
    if (program == nullptr) continue;
    const bool on_spot = program->placement.capacity() == "spot";
    if (!on_spot && spot[attempt.trial()]) ++tally["on-demand after spot"];
    spot[attempt.trial()] = on_spot;
  }
  for (const auto& [name, program] : world.programs()) {
    CountZombie(program, tally);
    for (const Save& save : program.saves) tally["checkpoints refused"] += save.refused;
  }
  const auto trials = store.ListTrials({.experiment = key});
  for (const auto& [trial, revision] : *trials) {
    const auto checkpoints = store.ListCheckpoints({key, trial.number()});
    CountCheckpoints(*checkpoints, tally);
    const Program* first = world.Find({{key, trial.number()}, 1});
    const bool parent = trial.has_parent();
    tally["trials of a parent"] += parent;
    tally["started without the parent's checkpoint"] += parent && first && first->from == 0;
    tally["trials killed"] += trial.phase() == v1::TRIAL_KILLED;
    tally["trials failed"] += trial.phase() == v1::TRIAL_FAILED;
  }
  const v1::Experiment experiment = store.GetExperiment(key)->record;
  const v1::Condition end = experiment::CurrentCondition(experiment);
  tally["budgets reached"] += end.reason() == "BudgetReached";
  tally["trials recommended"] += experiment.status().shirabe().has_recommended_trial();
}

}  // namespace shirabe::simulation
