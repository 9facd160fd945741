// What is counted, spent and told, against what happened in the world.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "experiment/conditions.h"
#include "experiment/plan.h"
#include "experiment/spec/objective_value.h"
#include "experiment/state/budget.h"
#include "experiment/state/experiment_state.h"
#include "experiment/state/retry_policy.h"
#include "experiment/submission.h"
#include "tests/simulation/invariants.h"

namespace shirabe::simulation {
namespace {

using Charge = experiment::NextStep::Charge;

std::string DifferCounts(const std::string& what, int64_t is, int64_t should) {
  return absl::StrFormat("%s is %d, not %d", what, is, should);
}

// What is told of an attempt after which the trial is tried again; "" where nothing is.
std::string EventOf(v1::Cause cause, Charge charge) {
  switch (charge) {
    case Charge::kNothing: return "";
    case Charge::kFailure: return "AttemptFailed";
    case Charge::kYield: return "TrialYielded";
    case Charge::kPreemption:
      return cause >= v1::PREEMPTED_SCHEDULER && cause <= v1::PREEMPTED_SPOT ? "TrialPreempted"
                                                                             : "AttemptLost";
  }
  return "";
}

// What an attempt that is closed makes of the counts of its trial, and what comes next.
experiment::NextStep Close(const v1::Attempt& attempt, const Program* program,
                           const v1::AttemptPolicy& policy, v1::Trial& counts) {
  const bool newer = program != nullptr && program->LeftNewerCheckpoint();
  if (newer) {
    counts.set_fruitless(0);
    counts.set_yields(0);
  }
  const auto next = experiment::Next(attempt.cause(), counts, policy);
  if (next.charge == Charge::kFailure) counts.set_failures(counts.failures() + 1);
  if (next.charge == Charge::kPreemption) counts.set_preemptions(counts.preemptions() + 1);
  if (next.kind == experiment::NextStep::Kind::kFinish || newer) return next;
  if (next.charge == Charge::kPreemption) counts.set_fruitless(counts.fruitless() + 1);
  if (next.charge == Charge::kYield) counts.set_yields(counts.yields() + 1);
  return next;
}

}  // namespace

std::string Invariants::AfterPass() {
  const v1::Experiment experiment = store_->GetExperiment(key_)->record;
  const v1::ExperimentSpec& spec = experiment.spec();
  if (!spec.shirabe().budget().has_max_cost()) return "";
  const auto open = store_->ListAttempts({.experiment = key_, .open_only = true});
  bool all = true, ending = false;
  for (const auto& [attempt, revision] : *open) {
    all = all && attempt.has_stop();
    ending = ending || attempt.stop().cause() == v1::EXPERIMENT_ENDED;
  }
  if (ending && !committed_at_end_) committed_at_end_ = Committed(experiment, true);
  if (all || Committed(experiment, false) <= spec.shirabe().budget().max_cost()) return "";
  return "I7: the budget is spent, and an attempt was not told to end";
}

// What the closed attempts have cost and the running ones do until now; with the reserve, also what
// those that are open cost until they have ended.
double Invariants::Committed(const v1::Experiment& experiment, bool with_reserve) {
  double committed = experiment.status().shirabe().cost();
  const double dearest =
      world_->QuotePlacement({.policy = experiment.spec().shirabe().capacity()}).price_per_hour;
  const absl::Duration reserve = experiment::ReservedTime(experiment::GraceOf(experiment));
  const auto open = store_->ListAttempts({.experiment = key_, .open_only = true});
  for (const auto& [attempt, revision] : *open) {
    const Program* program = world_->Find({{key_, attempt.trial()}, attempt.number()});
    const bool runs = program != nullptr && attempt.state() == v1::ATTEMPT_RUNNING;
    const bool placed = runs && (!with_reserve || experiment::IsPlaced(attempt));
    const double price = placed ? program->placement.price_per_hour() : dearest;
    if (with_reserve) committed += experiment::CostOf(reserve, price);
    if (!runs) continue;
    const absl::Duration until =
        with_reserve ? world_->Now() : std::min(world_->Now(), program->SeenEnd());
    committed += experiment::CostOf(until - program->start, price);
  }
  return committed;
}

// The cap may be exceeded by what the attempts that run cost until they have been stopped.
std::string Invariants::CheckBudget(const v1::Experiment& experiment) {
  const v1::ExperimentSpec& spec = experiment.spec();
  if (!spec.shirabe().budget().has_max_cost()) return "";
  constexpr double kPollSeconds = 20;  // the longest that the simulation sleeps
  double price = 0;
  for (const auto& [key, program] : world_->programs()) {
    price = std::max(price, program.placement.price_per_hour());
  }
  const double grace = spec.shirabe().attempts().grace_period_seconds() + kPollSeconds;
  const double most =
      spec.shirabe().budget().max_cost() + spec.parallel_trial_count() * price * grace / 3600;
  const double cost = experiment.status().shirabe().cost();
  if (cost > most)
    return absl::StrFormat("I7: the budget was exceeded: %.9g, not %.9g", cost, most);
  const bool by_budget = experiment::CurrentCondition(experiment).reason() == "BudgetReached";
  if (!by_budget || !committed_at_end_ || experiment.status().shirabe().stopping()) return "";
  // What the next attempt would cost may end it too, but only where nothing runs.
  const double cap = spec.shirabe().budget().max_cost();
  if (*committed_at_end_ >= cap * (1 - 1e-9)) return "";
  return absl::StrFormat("I7: it ended when %.9g of %.9g was committed", *committed_at_end_, cap);
}

std::string Invariants::CheckBudgets(const v1::Trial& trial, const Attempts& attempts) {
  const auto policy = store_->GetExperiment(key_)->record.spec().shirabe().attempts();
  v1::Trial should;
  should.set_number(trial.number());
  for (const auto& [attempt, revision] : attempts) {
    if (attempt.state() != v1::ATTEMPT_CLOSED) continue;
    Close(attempt, world_->Find({{key_, trial.number()}, attempt.number()}), policy, should);
  }
  if (trial.failures() != should.failures()) {
    return DifferCounts("failures", trial.failures(), should.failures());
  }
  if (trial.preemptions() != should.preemptions()) {
    return DifferCounts("preemptions", trial.preemptions(), should.preemptions());
  }
  if (trial.fruitless() != should.fruitless()) {
    return DifferCounts("fruitless", trial.fruitless(), should.fruitless());
  }
  return trial.yields() == should.yields()
             ? ""
             : DifferCounts("yields", trial.yields(), should.yields());
}

// I5: the objective is that of the rows that count, and who has none is of no use to the algorithm.
std::string Invariants::CheckObjective(const v1::Trial& trial) {
  const v1::ObjectiveSpec objective = store_->GetExperiment(key_)->record.spec().objective();
  const auto should = experiment::ObjectiveOf(objective, trial.observation());
  if (trial.has_objective() != should.has_value())
    return "I5: its objective is not that of its rows";
  if (should && trial.objective() != should->value) return "I5: its objective is another";
  const bool usable =
      trial.phase() == v1::TRIAL_SUCCEEDED || trial.phase() == v1::TRIAL_EARLY_STOPPED;
  if (trial.infeasible()) infeasible_.insert(trial.number());
  if (trial.infeasible() != (usable && !should)) return "I5: its infeasibility is told wrongly";
  int64_t last = 0;
  const auto rows = store_->ListObservations({.trial = {key_, trial.number()}});
  for (const db::StoredObservation& row : *rows) last = std::max(last, row.step);
  return trial.last_step() == last ? ""
                                   : DifferCounts("I5: its last step", trial.last_step(), last);
}

// F25: what is stopped early was judged by what it reported itself, and what still counts.
std::string Invariants::CheckStop(const v1::Attempt& attempt, const v1::Trial& trial) {
  int64_t step = 0;
  if (attempt.stop().cause() == v1::SUSPENDED) return CheckGivenUp(attempt);
  if (attempt.stop().cause() != v1::EARLY_STOPPED) return "";
  if (std::sscanf(attempt.stop().reason().c_str(), "at step %ld", &step) != 1) return "";
  return step <= trial.last_step() ? ""
                                   : "F25: it was stopped for what an earlier attempt reported";
}

// Who made room for others, and not for the end of the controller, had little to lose by the only
// thing that tells: its program's own saves. What it did while it was looked at comes on top.
std::string Invariants::CheckGivenUp(const v1::Attempt& attempt) {
  constexpr absl::Duration kLook = absl::Seconds(25);
  const Program* const program = world_->Find({{key_, attempt.trial()}, attempt.number()});
  if (attempt.stop().reason().empty() || program == nullptr || !program->notified) return "";
  absl::Duration saved = program->start;
  for (const Save& save : program->saves) {
    if (!save.refused && save.at <= program->SeenEnd()) saved = std::max(saved, save.at);
  }
  const auto experiment = store_->GetExperiment(key_);
  const absl::Duration lost = *program->notified - saved;
  if (lost <= experiment::GraceOf(experiment->record) + kLook) return "";
  return absl::StrFormat("it was given up and had saved nothing for %s: %s",
                         absl::FormatDuration(lost), attempt.stop().reason());
}

// Whoever begins again or goes on says so, once, and so does whoever is tried again.
std::string Invariants::CheckEvents() {
  std::map<std::pair<int64_t, int32_t>, std::vector<std::string>> told;
  const auto events = store_->ListEvents({.experiment = key_});
  for (const v1::Event& event : *events) {
    told[{event.trial(), event.attempt()}].push_back(event.reason());
  }
  const auto policy = store_->GetExperiment(key_)->record.spec().shirabe().attempts();
  const auto trials = store_->ListTrials({.experiment = key_});
  for (const auto& [trial, revision] : *trials) {
    v1::Trial counts;
    counts.set_number(trial.number());
    const auto attempts = store_->ListAttempts({.experiment = key_, .trial = trial.number()});
    for (const auto& [attempt, at] : *attempts) {
      const std::vector<std::string>& of_it = told[{trial.number(), attempt.number()}];
      const auto times = [&](const std::string& reason) {
        return std::count(of_it.begin(), of_it.end(), reason);
      };
      const Program* program = world_->Find({{key_, trial.number()}, attempt.number()});
      const bool again = attempt.number() > 1 || trial.has_parent();
      const int64_t resumed = program != nullptr && program->from > 0;
      const int64_t restarted = program != nullptr && program->from == 0 && again;
      const std::string name =
          absl::StrFormat("attempt %d of trial %d", attempt.number(), trial.number());
      if (times("TrialResumed") != resumed) return name + ": where it went on is told wrongly";
      if (times("TrialRestarted") != restarted)
        return name + ": that it began anew is told wrongly";
      const auto next = Close(attempt, program, policy, counts);
      if (attempt.number() == trial.attempts()) continue;
      const std::string reason = EventOf(attempt.cause(), next.charge);
      for (const char* one : {"AttemptFailed", "AttemptLost", "TrialPreempted", "TrialYielded"}) {
        if (times(one) != (reason == one)) return name + ": " + one + " is told wrongly";
      }
    }
  }
  return "";
}

}  // namespace shirabe::simulation
