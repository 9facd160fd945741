#include "experiment/plan.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/trial_result.h"
#include "experiment/state/retry_policy.h"
#include "experiment/state/stop_rules.h"
#include "experiment/state/victim_choice.h"
#include "experiment/submission.h"

namespace shirabe::experiment {
namespace {

constexpr int kDefaultParallel = 3;

int64_t Completed(const v1::ExperimentStatus& status) {
  return status.trials_succeeded() + status.trials_failed() + status.trials_killed() +
         status.trials_early_stopped() + status.trial_metrics_unavailable();
}

int64_t CountedAsFailed(const v1::ExperimentStatus& status) {
  return status.trials_failed() + status.trial_metrics_unavailable();
}

std::optional<Plan::Ending> DecideBudget(const PlanInput& input) {
  const bool running = std::any_of(input.live.begin(), input.live.end(),
                                   [](const LiveTrial& live) { return live.open != nullptr; });
  const v1::Budget& budget = input.experiment->spec().shirabe().budget();
  const auto why = input.money.WhyReached(running, budget.currency());
  if (!why) return std::nullopt;
  return Plan::Ending{true, "BudgetReached", *why};
}

// A rule of spec.shirabe.limits or stopWhen. A search that has found nothing has not succeeded.
std::optional<Plan::Ending> DecideRule(const PlanInput& input) {
  const auto rule = DecideStopRule(*input.experiment, input.now);
  if (!rule) return std::nullopt;
  const bool found = input.experiment->status().current_optimal_trial().has_objective();
  return Plan::Ending{found, ReasonOf(*rule), rule->message() + BestWords(*input.experiment), rule};
}

// One trial has to reach the goals of all objectives that have one: if any does, one of the front
// does, and comes first there.
std::optional<Plan::Ending> DecideGoals(const v1::Experiment& experiment) {
  const v1::ExperimentSpec& spec = experiment.spec();
  for (const v1::FrontTrial& trial : experiment.status().shirabe().front().trials()) {
    if (!ReachesGoals(spec, LossesOf(spec, trial.values()))) continue;
    std::string values =
        spec.objective().objective_metric_name() + " = " + FormatNumber(trial.values(0));
    for (int i = 1; i < trial.values_size(); ++i) {
      values += ", " + spec.shirabe().additional_objectives(i - 1).metric_name() + " = " +
                FormatNumber(trial.values(i));
    }
    return Plan::Ending{true, "ExperimentGoalReached",
                        "trial " + trial.trial_name() + " reached all goals: " + values};
  }
  return std::nullopt;
}

std::optional<Plan::Ending> DecideGoal(const v1::Experiment& experiment) {
  const v1::ExperimentSpec& spec = experiment.spec();
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  if (HasSeveralObjectives(spec)) return DecideGoals(experiment);
  if (!best.has_objective() || !ReachesGoal(spec.objective(), best.objective())) {
    return std::nullopt;
  }
  return Plan::Ending{true, "ExperimentGoalReached",
                      "trial " + best.best_trial_name() +
                          " reached the goal: " + spec.objective().objective_metric_name() + " = " +
                          FormatNumber(best.objective())};
}

// The rules in Katib's order: goal, too many failures, enough trials, nothing left; and ours.
std::optional<Plan::Ending> DecideEnding(const PlanInput& input) {
  const v1::ExperimentSpec& spec = input.experiment->spec();
  const v1::ExperimentStatus& status = input.experiment->status();
  const v1::OptimalTrial& best = status.current_optimal_trial();
  if (!status.shirabe().fatal().empty()) {
    return Plan::Ending{false, "TrialTemplateInvalid", status.shirabe().fatal()};
  }
  if (status.shirabe().has_stop_rule()) return DecideRule(input);
  if (auto reached = DecideGoal(*input.experiment)) return reached;
  if (spec.has_max_failed_trial_count() &&
      CountedAsFailed(status) > spec.max_failed_trial_count()) {
    return Plan::Ending{
        false, "ExperimentMaxFailedTrialsReached",
        absl::StrFormat("%d trials failed or had no metric; maxFailedTrialCount is %d",
                        CountedAsFailed(status), spec.max_failed_trial_count())};
  }
  if (auto spent = DecideBudget(input)) return spent;
  // Before what follows: trials that are stopped by that are done as well.
  if (status.shirabe().stopping()) {
    return Plan::Ending{best.has_objective(), "ExperimentStopped", status.shirabe().stop_reason()};
  }
  if (spec.has_max_trial_count() && Completed(status) >= spec.max_trial_count()) {
    return Plan::Ending{true, "ExperimentMaxTrialsReached",
                        Completed(status) == 1
                            ? "1 trial is done"
                            : absl::StrFormat("%d trials are done", Completed(status))};
  }
  if (status.shirabe().exhausted() && input.live.empty()) {
    return Plan::Ending{true, "ExperimentSuggestionEndReached",
                        "the algorithm has no further point: " + status.shirabe().waiting()};
  }
  return DecideRule(input);
}

void StopAllAttempts(const PlanInput& input, v1::Cause cause, Plan& plan) {
  for (const LiveTrial& live : input.live) {
    if (live.open != nullptr) {
      plan.stop.push_back({live.trial->number(), cause});
    } else if (cause == v1::EXPERIMENT_ENDED) {
      plan.kill.push_back(live.trial->number());
    }
  }
}

// Why a trial that was lost waits before it is tried again.
std::string WhyBackoff(const v1::Trial& trial) {
  const std::string until = "backoff until " + FormatTime(trial.not_before());
  if (trial.fruitless() < kNoProgressAfter) return until;
  return absl::StrFormat(
      "cannot progress: %d attempts in a row were lost before they had saved anything newer; "
      "its events say how each ended: save more often, allow on-demand machines "
      "(spec.shirabe.capacity), or give up sooner (spec.shirabe.attempts.maxPreemptions); %s",
      trial.fruitless(), until);
}

// Waiting trials start before new ones are asked for, the oldest first, a few at a time.
void StartWaiting(const PlanInput& input, int64_t slots, int64_t affordable, Plan& plan) {
  for (const LiveTrial& live : input.live) {
    if (live.open != nullptr) continue;
    std::string& why = plan.why[live.trial->number()];
    const absl::Duration delay = FromProto(live.trial->not_before()) - input.now;
    const int starts = static_cast<int>(plan.start.size());
    if (delay > absl::ZeroDuration() && delay <= kMaxAttemptDelay) {
      plan.wake = std::min(plan.wake, delay);
      why = WhyBackoff(*live.trial);
    } else if (starts >= slots) {
      why = plan.limited.empty() ? "parallelTrialCount attempts are running" : plan.limited;
    } else if (starts >= affordable) {
      why = "spec.shirabe.budget: what runs may use up the rest";
    } else if (starts >= kMaxNewTrials) {
      plan.more = true;
    } else {
      plan.start.push_back(live.trial->number());
    }
  }
}

// The first reason why nothing goes on, where nothing runs: also what is on its way may wait, for a
// node say. Why the algorithm has no further point stands already: it is said again at the end.
std::string WhyNothingRuns(const PlanInput& input, const Plan& plan) {
  if (input.experiment->status().shirabe().exhausted()) return "";
  const v1::Trial* first = nullptr;
  for (const LiveTrial& live : input.live) {
    if (live.open == nullptr) continue;
    if (live.open->state() == v1::ATTEMPT_RUNNING || live.trial->waiting().empty()) return "";
    if (first == nullptr) first = live.trial;
  }
  if (first != nullptr) return first->waiting();
  return plan.start.empty() && plan.suggest == 0 && !plan.why.empty() ? plan.why.begin()->second
                                                                      : "";
}

bool IsFull(const v1::Experiment& experiment) {
  const v1::ExperimentSpec& spec = experiment.spec();
  const v1::ExperimentStatus& status = experiment.status();
  return status.shirabe().exhausted() ||
         (spec.has_max_trial_count() && status.trials() >= spec.max_trial_count());
}

int64_t NewTrials(const PlanInput& input, int64_t parallel, Plan& plan) {
  if (IsFull(*input.experiment)) return 0;
  const v1::ExperimentSpec& spec = input.experiment->spec();
  const int64_t made = input.experiment->status().trials();
  int64_t wanted = parallel - static_cast<int64_t>(input.live.size());
  if (spec.has_max_trial_count()) wanted = std::min(wanted, spec.max_trial_count() - made);
  const int64_t most = input.limits.trials;
  if (most > 0 && wanted > most - made) {
    wanted = most - made;
    plan.limited = absl::StrFormat(
        "%d trials have been made: the most that an experiment may have here (--max-trials %d of "
        "the server)",
        made, most);
  }
  return std::max<int64_t>(0, wanted);
}

// How many attempts may run at once: those who ask decide for themselves.
int64_t Parallel(const PlanInput& input, Plan& plan) {
  const v1::ExperimentSpec& spec = input.experiment->spec();
  const auto live = static_cast<int64_t>(input.live.size());
  const int64_t wanted = input.asked                       ? live + *input.asked
                         : spec.has_parallel_trial_count() ? spec.parallel_trial_count()
                                                           : kDefaultParallel;
  const int64_t most = input.limits.parallel_trials;
  if (most == 0 || wanted <= most) return wanted;
  plan.limited = absl::StrFormat(
      "%d trials at the same time are the most for an experiment here (--max-parallel-trials %d of "
      "the server); %d are wanted",
      most, most, wanted);
  return most;
}

// More run than may, since the count was lowered: those that have just saved make room, the others
// when they save or end. Each is gone on with when there is room for it.
void GiveUpSurplus(const PlanInput& input, int64_t parallel, Plan& plan) {
  std::vector<VictimCandidate> candidates;
  for (const LiveTrial& live : input.live) {
    if (live.open == nullptr || live.leaves) continue;
    candidates.push_back({live.trial->number(), live.unsaved, live.price_per_hour});
  }
  const auto running = static_cast<int64_t>(candidates.size());
  const std::string few =
      absl::StrFormat("%d trials may run at the same time, and %d run", parallel, running);
  const auto victims =
      ChooseVictims(std::move(candidates), running - parallel, GraceOf(*input.experiment));
  for (const Victim& victim : victims) {
    plan.stop.push_back({victim.trial, v1::SUSPENDED, few + ": " + victim.why});
  }
  if (running - parallel > static_cast<int64_t>(victims.size())) {
    plan.waiting = few + ": the next that saves a checkpoint makes room, and goes on later";
  }
}

}  // namespace

Plan MakePlan(const PlanInput& input) {
  CHECK(input.experiment != nullptr);
  Plan plan;
  if (IsEnded(*input.experiment)) {
    plan.full = true;
    StopAllAttempts(input, v1::EXPERIMENT_ENDED, plan);
    return plan;
  }
  plan.ending = DecideEnding(input);
  if (plan.ending) {
    StopAllAttempts(input, v1::EXPERIMENT_ENDED, plan);
    plan.conclude = input.live.size() == plan.kill.size();
    return plan;
  }
  if (input.suspended) {
    StopAllAttempts(input, v1::SUSPENDED, plan);
    return plan;
  }
  plan.wake = TimeLeft(*input.experiment, input.now);
  if (input.experiment->status().shirabe().paused()) {
    plan.waiting = "paused: `shirabe resume` lets it go on";
    return plan;
  }
  const int64_t parallel = Parallel(input, plan);
  const int64_t open = std::count_if(input.live.begin(), input.live.end(),
                                     [](const LiveTrial& live) { return live.open != nullptr; });
  const int64_t affordable = input.money.Affordable(parallel);
  if (!input.asked) GiveUpSurplus(input, parallel, plan);
  StartWaiting(input, parallel - open, affordable, plan);
  const int64_t wanted = NewTrials(input, parallel, plan);
  plan.full = IsFull(*input.experiment);
  const int64_t paid = std::min(wanted, affordable - static_cast<int64_t>(plan.start.size()));
  plan.suggest = static_cast<int>(std::min<int64_t>(paid, kMaxNewTrials));
  plan.more = plan.more || plan.suggest < paid;
  if (paid < wanted) plan.waiting = "spec.shirabe.budget: what runs may use up the rest";
  if (plan.waiting.empty()) plan.waiting = plan.limited;
  if (plan.waiting.empty()) plan.waiting = WhyNothingRuns(input, plan);
  return plan;
}

absl::Duration GraceOf(const v1::Experiment& experiment) {
  const v1::AttemptPolicy& policy = experiment.spec().shirabe().attempts();
  return absl::Seconds(policy.has_grace_period_seconds() ? policy.grace_period_seconds() : 15.0);
}

}  // namespace shirabe::experiment
