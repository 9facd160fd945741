#include "tests/simulation/invariants.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "absl/strings/str_format.h"
#include "experiment/conditions.h"
#include "experiment/spec/objective_value.h"
#include "experiment/state/experiment_state.h"
#include "experiment/state/retry_policy.h"
#include "experiment/submission.h"
#include "trial/trial_template.h"

namespace shirabe::simulation {
namespace {

std::string PointText(const v1::Trial& trial) {
  std::string text;
  for (const v1::Assignment& assignment : trial.assignments()) {
    text += assignment.name() + "=" + trial::FormatAssignment(assignment) + " ";
  }
  return text;
}

// I7: to 1e-9 of what it should be.
bool Same(double is, double should) {
  return std::abs(is - should) <= 1e-9 * std::max(1.0, std::abs(should));
}

std::string Differ(const std::string& what, double is, double should) {
  return absl::StrFormat("%s is %.12g, not %.12g", what, is, should);
}

bool IsPreempted(v1::Cause cause) {
  return cause >= v1::PREEMPTED_SCHEDULER && cause <= v1::PREEMPTED_SPOT;
}

bool IsLoss(v1::Cause cause) {
  return IsPreempted(cause) || cause == v1::INFRASTRUCTURE || cause == v1::UNKNOWN_CAUSE;
}

// What it ran for after its last checkpoint that could be committed.
double LostSeconds(const Program& program) {
  absl::Duration kept = program.start;
  for (const Save& save : program.saves) {
    if (!save.refused && save.at <= program.SeenEnd()) kept = std::max(kept, save.at);
  }
  return absl::ToDoubleSeconds(program.SeenEnd() - kept);
}

AttemptKey KeyOf(const v1::Attempt& attempt) {
  return {{ExperimentKeyOf(attempt), attempt.trial()}, attempt.number()};
}

}  // namespace

std::string Invariants::AfterStep(int most_parallel) {
  if (!world_->violation().empty()) return world_->violation();
  const auto changes = store_->Changes(seen_, -1);
  std::set<int64_t> changed;
  for (const db::Change& change : *changes) {
    seen_ = std::max(seen_, change.revision);
    if (change.trial != 0) changed.insert(change.trial);
  }
  for (const int64_t number : changed) {
    const auto trial = store_->GetTrial({key_, number});
    if (!trial.ok()) return "I3: a trial is missing";
    if (std::string broken = CheckTrial(trial->record); !broken.empty()) {
      return absl::StrFormat("trial %d: %s", number, broken);
    }
  }
  int open = 0;
  for (const auto& [number, count] : open_) open += count;
  if (open > most_parallel) {
    return absl::StrFormat("%d open attempts, %d allowed", open, most_parallel);
  }
  const v1::Experiment experiment = store_->GetExperiment(key_)->record;
  const auto trials = static_cast<int64_t>(points_.size());
  if (!points_.empty() && points_.rbegin()->first != trials) return "I3: a trial is missing";
  if (trials > experiment.spec().max_trial_count()) return "more trials than maxTrialCount";
  if (experiment.spec().parallel_trial_count() < 1) return "it was scaled to nothing";
  return changed.empty() ? "" : CheckStatus(experiment);
}

std::string Invariants::CheckStatus(const v1::Experiment& experiment) {
  const v1::ExperimentStatus& status = experiment.status();
  const v1::OptimalTrial& best = status.current_optimal_trial();
  if (best_ && !best.has_objective()) return "I5: the best trial was forgotten";
  if (best.has_objective()) {
    const double loss = experiment::LossOf(experiment.spec().objective(), best.objective());
    if (!std::isfinite(loss)) return "I5: the best objective is not finite";
    if (best_ && loss > *best_) return "I5: the best objective went backwards";
    best_ = loss;
  }
  Sums all;
  for (const auto& [number, sums] : sums_) {
    all.cost += sums.cost;
    all.seconds += sums.seconds;
    all.on_demand_cost += sums.on_demand_cost;
  }
  const v1::ShirabeStatus& ours = status.shirabe();
  if (!Same(ours.cost(), all.cost)) return "I7: " + Differ("status.cost", ours.cost(), all.cost);
  if (!Same(ours.seconds(), all.seconds)) {
    return "I7: " + Differ("status.seconds", ours.seconds(), all.seconds);
  }
  if (Same(ours.on_demand_cost(), all.on_demand_cost)) return "";
  return "I7: " + Differ("status.onDemandCost", ours.on_demand_cost(), all.on_demand_cost);
}

// ---- one trial ---------------------------------------------------------------------------------

std::string Invariants::CheckTrial(const v1::Trial& trial) {
  const auto [known, fresh] = points_.emplace(trial.number(), PointText(trial));
  if (!fresh && known->second != PointText(trial)) return "I3: it changed its point";
  if (fresh) {
    if (std::string broken = CheckLineage(trial); !broken.empty()) return broken;
  }
  const auto attempts = store_->ListAttempts({.experiment = key_, .trial = trial.number()});
  if (static_cast<int>(attempts->size()) != trial.attempts()) return "an attempt is missing";
  for (const auto& attempt : *attempts)
    first_seen_.emplace(KeyOf(attempt.record), attempt.revision);
  if (std::string broken = CheckPhase(trial, *attempts); !broken.empty()) return broken;
  if (std::string broken = CheckBudgets(trial, *attempts); !broken.empty()) return broken;
  if (std::string broken = CheckObjective(trial); !broken.empty()) return broken;
  return CheckLedger(trial, *attempts);
}

std::string Invariants::CheckPhase(const v1::Trial& trial, const Attempts& attempts) {
  int& open = open_[trial.number()] = 0;
  for (const auto& attempt : attempts) open += attempt.record.state() != v1::ATTEMPT_CLOSED;
  if (open > 1) return "I2: two attempts are open";
  if (world_->RunningOf({key_, trial.number()}) > 1) return "I2: two programs run";
  const auto terminal = terminal_.find(trial.number());
  if (terminal != terminal_.end() && terminal->second != trial.phase()) {
    return "I1: it left its terminal phase";
  }
  for (const auto& attempt : attempts) {
    if (std::string broken = CheckStop(attempt.record, trial); !broken.empty()) return broken;
  }
  if (!experiment::IsTerminal(trial.phase())) return "";
  terminal_[trial.number()] = trial.phase();
  if (open > 0) return "I2: an open attempt of an ended trial";
  if (std::string broken = CheckEarlyStop(trial, attempts); !broken.empty()) return broken;
  if (trial.phase() != v1::TRIAL_FAILED) return "";
  const v1::Cause cause = attempts.back().record.cause();
  if (cause == v1::APP_ERROR || cause == v1::OOM || cause == v1::YIELDED) return "";
  return "it counts as failed, and its last attempt ended " + experiment::CauseWord(cause);
}

// F25: whoever came first, a trial that was stopped early ended by that, and says why.
std::string Invariants::CheckEarlyStop(const v1::Trial& trial, const Attempts& attempts) {
  if (trial.reason() == experiment::kExperimentEnded) {
    if ((trial.phase() == v1::TRIAL_EARLY_STOPPED) == trial.has_objective()) return "";
    return "I5: it ran when the experiment ended, and its value did not count as it should";
  }
  const bool stopped = trial.phase() == v1::TRIAL_EARLY_STOPPED;
  for (const auto& [attempt, revision] : attempts) {
    const bool last = attempt.number() == trial.attempts();
    if ((attempt.cause() == v1::EARLY_STOPPED) != (stopped && last)) {
      return absl::StrFormat("F25: attempt %d ended %s", attempt.number(),
                             experiment::CauseWord(attempt.cause()));
    }
  }
  if (!stopped) return "";
  const std::string& why = attempts.back().record.stop().reason();
  int64_t step = 0;
  if (trial.message() != why || std::sscanf(why.c_str(), "at step %ld", &step) != 1) {
    return "F25: it does not say why it was stopped: " + trial.message();
  }
  return step <= trial.last_step() ? "" : "F25: it was stopped for a step that does not count";
}

std::string Invariants::CheckLedger(const v1::Trial& trial, const Attempts& attempts) {
  Sums& sums = sums_[trial.number()] = Sums{};
  int64_t reached = 0, gained = 0;  // reached: also what was inherited from a parent
  for (const auto& [attempt, revision] : attempts) {
    if (attempt.state() != v1::ATTEMPT_CLOSED) continue;
    if (std::string broken = CheckClosed(attempt); !broken.empty()) {
      return absl::StrFormat("attempt %d: %s", attempt.number(), broken);
    }
    sums.seconds += attempt.seconds();
    sums.cost += attempt.cost();
    sums.wasted_seconds += attempt.wasted_seconds();
    for (const v1::Placement& placement : attempt.placements()) {
      sums.on_demand_cost += attempt.seconds() * placement.on_demand_price_per_hour() / 3600;
    }
    const int64_t last = attempt.last_step();
    const int64_t inherited = std::max<int64_t>(0, attempt.resumed_from_step() - reached);
    reached += inherited;
    gained += inherited;
    if (inherited > 0 && attempt.resumed_from_trial() != trial.parent().trial()) {
      return "I6: it resumed beyond what it had reached";
    }
    const int64_t redone =
        std::max<int64_t>(0, std::min(last, reached) - attempt.resumed_from_step());
    if (attempt.steps_gained() != std::max<int64_t>(0, last - reached)) return "wrong stepsGained";
    if (last > 0 && attempt.steps_redone() != redone) return "wrong stepsRedone";
    reached = std::max(reached, last);
    gained += attempt.steps_gained();
  }
  const bool counts = open_[trial.number()] == 0 && reached > 0;  // and is not silent
  if (counts && gained != trial.reached_step()) {
    return absl::StrFormat("steps gained are %d, the step reached is %d", gained,
                           trial.reached_step());
  }
  if (!Same(trial.cost(), sums.cost)) return "I7: " + Differ("cost", trial.cost(), sums.cost);
  if (!Same(trial.seconds(), sums.seconds)) {
    return "I7: " + Differ("seconds", trial.seconds(), sums.seconds);
  }
  if (Same(trial.wasted_seconds(), sums.wasted_seconds)) return "";
  return "I7: " + Differ("wastedSeconds", trial.wasted_seconds(), sums.wasted_seconds);
}

// The ledger's line of an attempt that is over, against what happened to it.
std::string Invariants::CheckClosed(const v1::Attempt& attempt) {
  const auto [known, fresh] = closed_.emplace(KeyOf(attempt), attempt.SerializeAsString());
  if (!fresh) return known->second == attempt.SerializeAsString() ? "" : "it was closed twice";
  if (attempt.cause() == v1::CAUSE_NONE) return "it has no cause";
  double cost = 0;
  for (const v1::Placement& placement : attempt.placements()) {
    cost += attempt.seconds() * placement.price_per_hour() / 3600;
  }
  if (!Same(attempt.cost(), cost)) return "I7: " + Differ("cost", attempt.cost(), cost);
  const double wasted = attempt.wasted_seconds();
  const Program* program = world_->Find(KeyOf(attempt));
  if (program == nullptr) return attempt.seconds() == 0 ? "" : "it never ran, and has seconds";
  const double ran = absl::ToDoubleSeconds(program->SeenEnd() - program->start);
  if (!Same(attempt.seconds(), ran)) return "I7: " + Differ("seconds", attempt.seconds(), ran);
  const double lost = IsLoss(attempt.cause()) ? LostSeconds(*program) : 0;
  if (std::abs(wasted - lost) > 1e-6) return "I7: " + Differ("wastedSeconds", wasted, lost);
  if (std::string broken = CheckCause(attempt, *program); !broken.empty()) return broken;
  return CheckResume(attempt, *program);
}

std::string Invariants::CheckCause(const v1::Attempt& attempt, const Program& program) {
  const v1::Cause cause = attempt.cause();
  const std::string word = experiment::CauseWord(cause);
  // Who has said to be done has finished, whatever came then; a zombie, if it said so in time.
  const v1::Cause stop = attempt.stop().cause();
  const bool ending = stop == v1::USER || stop == v1::EXPERIMENT_ENDED ||
                      stop == v1::EARLY_STOPPED;  // it is not to run again
  if (program.done && program.SeenEnd() == program.end && !ending) {
    return cause == v1::COMPLETED ? "" : "it was done: " + word;
  }
  if (program.done && cause == v1::COMPLETED) return "";
  if (attempt.has_stop()) return cause == attempt.stop().cause() ? "" : "we stopped it: " + word;
  if (program.platform != v1::CAUSE_NONE) {
    return cause == program.platform ? "" : "the platform took its machine: " + word;
  }
  const bool lost = program.vanishes || program.lost_at <= program.end;
  const bool finished = !lost && program.signal == 0 && program.exit_code == 0;
  if (IsPreempted(cause)) return "nobody preempted it: " + word;
  if (finished) return cause == v1::COMPLETED ? "" : "it finished: " + word;
  return cause == v1::COMPLETED ? "it did not finish: " + word : "";
}

// ---- the end -----------------------------------------------------------------------------------

std::string Invariants::AtEnd() {
  const v1::Experiment experiment = store_->GetExperiment(key_)->record;
  if (!experiment::IsEnded(experiment)) return "it stopped without an end";
  if (world_->RunningCount() > 0) return "I8: a program was left running";
  std::optional<double> best;
  std::set<std::string> points;
  std::set<int64_t> stops_told;
  const auto events = store_->ListEvents({.experiment = key_});
  for (const v1::Event& event : *events) {
    if (event.reason() != "TrialEarlyStopped") continue;
    if (!stops_told.insert(event.trial()).second) return "F25: an early stop was told twice";
  }
  const auto trials = store_->ListTrials({.experiment = key_});
  for (const auto& [trial, revision] : *trials) {
    if (!experiment::IsTerminal(trial.phase())) return "I1: a trial never ended";
    const bool fresh = points.insert(PointText(trial)).second;
    if (!fresh && !trial.has_parent()) return "I3: a point was tried twice";
    std::string broken = CheckRows(trial);
    if (broken.empty()) broken = CheckCheckpoints(trial);
    if (!broken.empty()) return absl::StrFormat("trial %d: %s", trial.number(), broken);
    const bool stopped = trial.phase() == v1::TRIAL_EARLY_STOPPED;
    const bool by_rule = stopped && trial.reason() != experiment::kExperimentEnded;
    if (by_rule && !stops_told.contains(trial.number())) return "F25: no event of its early stop";
    if ((trial.phase() != v1::TRIAL_SUCCEEDED && !stopped) || !trial.has_objective()) continue;
    const double loss = experiment::LossOf(experiment.spec().objective(), trial.objective());
    best = std::min(best.value_or(loss), loss);
  }
  const v1::ExperimentStatus& status = experiment.status();
  const v1::OptimalTrial& optimal = status.current_optimal_trial();
  if (best.has_value() != optimal.has_objective() ||
      (best && *best != experiment::LossOf(experiment.spec().objective(), optimal.objective()))) {
    return "I5: the best trial is not the best of the trials";
  }
  if (std::string broken = CheckEvents(); !broken.empty()) return broken;
  if (std::string broken = CheckCounts(status); !broken.empty()) return broken;
  if (std::string broken = CheckRecommended(status); !broken.empty()) return broken;
  return CheckBudget(experiment);
}

std::string Invariants::CheckCounts(const v1::ExperimentStatus& status) {
  std::map<v1::TrialPhase, int64_t> counts;
  for (const auto& [number, phase] : terminal_) ++counts[phase];
  if (status.trials_succeeded() == counts[v1::TRIAL_SUCCEEDED] &&
      status.trials_failed() == counts[v1::TRIAL_FAILED] &&
      status.trials_killed() == counts[v1::TRIAL_KILLED] &&
      status.trials_early_stopped() == counts[v1::TRIAL_EARLY_STOPPED] &&
      status.trial_metrics_unavailable() == counts[v1::TRIAL_METRICS_UNAVAILABLE] &&
      status.shirabe().trials_infeasible() == static_cast<int64_t>(infeasible_.size()) &&
      status.trials_running() == 0 && status.trials_pending() == 0) {
    return "";
  }
  return "the counts of the status are not those of the trials";
}

// Every point once, with the value reported; what counts is every step from where the trial
// began to the last, each from the attempt that it went on from, and nothing of a zombie.
std::string Invariants::CheckRows(const v1::Trial& trial) {
  const TrialKey key{key_, trial.number()};
  std::map<int32_t, int64_t> limit;  // of the rows of an attempt: where a later one resumed
  int64_t least = INT64_MAX;
  for (int32_t number = trial.attempts(); number >= 1; --number) {
    limit[number] = least;
    const Program* program = world_->Find({key, number});
    if (program != nullptr) least = std::min(least, program->from);
  }
  const int64_t begun = least == INT64_MAX ? 0 : least;  // in its parent, where that is not 0
  std::set<std::tuple<int32_t, int64_t, std::string>> keys;
  std::set<int64_t> counted;
  const auto rows = store_->ListObservations({.trial = key, .include_superseded = true});
  for (const db::StoredObservation& row : *rows) {
    if (!keys.insert({row.attempt, row.step, row.metric}).second) return "I4: a row stands twice";
    const Program* program = world_->Find({key, row.attempt});
    if (program == nullptr) return "I4: a row of an attempt that never ran";
    const bool implicit = program->training.implicit;  // its steps are not the program's own
    const double value = implicit ? row.value : ValueAt(program->training, row.step);
    if (row.value != value && !(std::isnan(row.value) && std::isnan(value))) {
      return absl::StrFormat("I4: the row of step %d has a value that was not reported", row.step);
    }
    const bool counts = implicit ? !row.superseded : row.step <= limit[row.attempt];
    if (counts == row.superseded) {
      return absl::StrFormat("the row of step %d, attempt %d, is %s", row.step, row.attempt,
                             counts ? "superseded" : "counted");
    }
    if (counts && !counted.insert(row.step).second) return "I4: a step counts twice";
  }
  const auto count = static_cast<int64_t>(counted.size());
  // One whose parent still runs may find, the next time, a later step of it than it has reached.
  const bool whole = trial.parent().step() == 0;
  if (whole && count > 0 && *counted.rbegin() - *counted.begin() != count - 1)
    return "I4: a step is missing";
  const Program* last = world_->Find({key, trial.attempts()});
  if (whole && last != nullptr && !last->training.silent && !last->training.implicit) {
    const auto reports =
        std::upper_bound(last->reported.begin(), last->reported.end(), last->SeenEnd()) -
        last->reported.begin();
    if (count < last->from - begun + last->StepsIn(reports)) {
      return "I4: a step that was reported is missing";
    }
    if (count > 0 && *counted.begin() != begun + 1) return "I4: its first step is missing";
  }
  if (trial.observation().metrics().empty()) return count == 0 ? "" : "its rows are not counted";
  const v1::Metric& metric = trial.observation().metrics(0);
  return metric.count() == count ? "" : "I5: it counts other rows than those that count";
}

// Only what a current attempt had saved, and could save, is in the store.
std::string Invariants::CheckCheckpoints(const v1::Trial& trial) {
  const auto checkpoints = store_->ListCheckpoints({key_, trial.number()});
  for (const auto& [checkpoint, revision] : *checkpoints) {
    const Program* program = world_->Find({{key_, trial.number()}, checkpoint.attempt()});
    const Save* save = program == nullptr ? nullptr : program->FindSave(checkpoint.step());
    if (save == nullptr) return "a checkpoint that nobody saved";
    if (save->refused) return "a checkpoint that cannot be committed";
    if (save->at > program->SeenEnd()) return "a zombie's checkpoint was committed";
    const Training& training = program->training;
    const auto counts = checkpoint.counts().find("loss");
    const int64_t counted = counts == checkpoint.counts().end() ? 0 : counts->second;
    // It is recorded with what had been reported before it was saved.
    const int64_t before = save->step - program->from;
    if (training.implicit && !training.silent && counted < before) {
      return absl::StrFormat("the checkpoint of step %d has %d steps counted", save->step, counted);
    }
    if (training.implicit || training.silent || training.nan || before == 0) continue;
    if (checkpoint.objective() == ValueAt(training, save->step)) continue;
    return absl::StrFormat("the checkpoint of step %d has the objective of another", save->step);
  }
  return "";
}

std::vector<std::string> Invariants::Points() const {
  std::vector<std::string> points;
  for (const auto& [number, text] : points_) points.push_back(text);
  return points;
}

}  // namespace shirabe::simulation
