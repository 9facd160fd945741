#include "experiment/state/stop_rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/spec/objective_value.h"

namespace shirabe::experiment {
namespace {

constexpr char kExperimentSeconds[] = "limits.experimentSeconds";
constexpr char kNoImprovement[] = "stopWhen.noImprovementTrials";
constexpr char kRegret[] = "stopWhen.regretBelow";
// A model of few results is often sure of too much; where the specification does not say how many.
constexpr int64_t kFewestForBound = 10;

// That have passed since the first trial, without pauses.
double SecondsSpent(const v1::Experiment& experiment, absl::Time now) {
  const v1::ExperimentStatus& status = experiment.status();
  if (!status.has_start_time()) return 0;
  if (status.shirabe().has_paused_since()) now = FromProto(status.shirabe().paused_since());
  const double seconds = absl::ToDoubleSeconds(now - FromProto(status.start_time()));
  return std::max(0.0, seconds - status.shirabe().paused_seconds());
}

v1::StopRule MakeRule(const char* name, double threshold, double value,
                      const v1::Experiment& experiment) {
  v1::StopRule rule;
  rule.set_rule(name);
  rule.set_threshold(threshold);
  rule.set_value(value);
  rule.set_results(CountResults(experiment.status()));
  return rule;
}

std::optional<v1::StopRule> CheckTime(const v1::Experiment& experiment, absl::Time now) {
  const v1::SearchLimits& limits = experiment.spec().shirabe().limits();
  const double spent = SecondsSpent(experiment, now);
  if (!limits.has_experiment_seconds() || spent < limits.experiment_seconds()) return std::nullopt;
  v1::StopRule rule = MakeRule(kExperimentSeconds, limits.experiment_seconds(), spent, experiment);
  rule.set_message(absl::StrCat(absl::FormatDuration(absl::Seconds(limits.experiment_seconds())),
                                " have passed since the first trial, without pauses (",
                                kExperimentSeconds, ")"));
  return rule;
}

std::optional<v1::StopRule> CheckImprovement(const v1::Experiment& experiment) {
  const v1::StopWhen& stop = experiment.spec().shirabe().stop_when();
  const int64_t without = experiment.status().shirabe().trials_since_improvement();
  if (!stop.has_no_improvement_trials() || without < stop.no_improvement_trials()) {
    return std::nullopt;
  }
  v1::StopRule rule = MakeRule(kNoImprovement, stop.no_improvement_trials(),
                               static_cast<double>(without), experiment);
  rule.set_message(absl::StrCat(
      without, " results in a row were no improvement",
      stop.min_improvement() > 0 ? " by more than " + FormatNumber(stop.min_improvement()) : "",
      " (", kNoImprovement, " ", stop.no_improvement_trials(), ")"));
  return rule;
}

std::optional<v1::StopRule> CheckRegret(const v1::Experiment& experiment) {
  const v1::StopWhen& stop = experiment.spec().shirabe().stop_when();
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (!stop.has_regret_below() || !status.has_regret_bound() ||
      status.regret_bound().bound() >= stop.regret_below()) {
    return std::nullopt;
  }
  const v1::RegretBound& known = status.regret_bound();
  v1::StopRule rule = MakeRule(kRegret, stop.regret_below(), known.bound(), experiment);
  rule.set_results(known.results());
  rule.set_message(absl::StrCat("the best value is within ", absl::StrFormat("%.4g", known.bound()),
                                " of the optimum, by the model of ", known.results(), " results (",
                                kRegret, " ", FormatNumber(stop.regret_below()), ")"));
  return rule;
}

}  // namespace

std::string BestWords(const v1::Experiment& experiment) {
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  if (!best.has_objective()) {
    return CountResults(experiment.status()) > 0 ? "; no trial keeps spec.shirabe.constraints"
                                                 : "; no trial has a result";
  }
  return absl::StrCat("; best ", experiment.spec().objective().objective_metric_name(), " ",
                      FormatNumber(best.objective()), " of trial ", best.best_trial_name());
}

int64_t CountResults(const v1::ExperimentStatus& status) {
  return status.trials_succeeded() + status.trials_early_stopped() -
         status.shirabe().trials_infeasible();
}

std::optional<v1::StopRule> DecideStopRule(const v1::Experiment& experiment, absl::Time now) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (status.has_stop_rule()) return status.stop_rule();
  if (auto rule = CheckTime(experiment, now)) return rule;
  const v1::StopWhen& stop = experiment.spec().shirabe().stop_when();
  if (CountResults(experiment.status()) < stop.min_trials()) return std::nullopt;
  if (auto rule = CheckImprovement(experiment)) return rule;
  return CheckRegret(experiment);
}

std::string ReasonOf(const v1::StopRule& rule) {
  if (rule.rule() == kExperimentSeconds) return "ExperimentTimeLimitReached";
  return rule.rule() == kRegret ? "ExperimentRegretBelow" : "ExperimentNoImprovement";
}

absl::Duration TimeLeft(const v1::Experiment& experiment, absl::Time now) {
  const v1::SearchLimits& limits = experiment.spec().shirabe().limits();
  const v1::ExperimentStatus& status = experiment.status();
  if (!limits.has_experiment_seconds() || !status.has_start_time() || status.shirabe().paused()) {
    return absl::InfiniteDuration();
  }
  const double left = limits.experiment_seconds() - SecondsSpent(experiment, now);
  return absl::Seconds(std::max(0.0, left));
}

// What counts as an improvement is compared with the last improvement, not with the best value:
// many small steps together are one.
void CountResult(double objective, bool feasible, v1::Experiment& experiment) {
  const v1::StopWhen& stop = experiment.spec().shirabe().stop_when();
  if (!stop.has_no_improvement_trials()) return;
  v1::ShirabeStatus& status = *experiment.mutable_status()->mutable_shirabe();
  const v1::ObjectiveSpec& spec = experiment.spec().objective();
  if (!feasible && !status.has_improved_objective()) return;  // the search is for the first
  const bool improves =
      feasible && (!status.has_improved_objective() ||
                   LossOf(spec, objective) <
                       LossOf(spec, status.improved_objective()) - stop.min_improvement());
  status.set_trials_since_improvement(improves ? 0 : status.trials_since_improvement() + 1);
  if (improves) status.set_improved_objective(objective);
}

void CountFrontResult(bool on_front, v1::Experiment& experiment) {
  if (!experiment.spec().shirabe().stop_when().has_no_improvement_trials()) return;
  v1::ShirabeStatus& status = *experiment.mutable_status()->mutable_shirabe();
  const bool found = experiment.status().current_optimal_trial().has_objective();
  if (!on_front && !found) return;  // the search is for the first that keeps all constraints
  status.set_trials_since_improvement(on_front ? 0 : status.trials_since_improvement() + 1);
}

void CountPause(bool paused, absl::Time now, v1::Experiment& experiment) {
  if (!experiment.spec().shirabe().limits().has_experiment_seconds()) return;
  v1::ShirabeStatus& status = *experiment.mutable_status()->mutable_shirabe();
  if (paused == status.has_paused_since()) return;
  if (paused) {
    *status.mutable_paused_since() = ToProto(now);
    return;
  }
  absl::Time since = FromProto(status.paused_since());
  status.clear_paused_since();
  if (!experiment.status().has_start_time()) return;  // nothing counts yet
  since = std::max(since, FromProto(experiment.status().start_time()));
  status.set_paused_seconds(status.paused_seconds() +
                            std::max(0.0, absl::ToDoubleSeconds(now - since)));
}

bool WantsRegretBound(const v1::Experiment& experiment) {
  const v1::StopWhen& stop = experiment.spec().shirabe().stop_when();
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (!stop.has_regret_below() || status.has_stop_rule()) return false;
  const int64_t results = CountResults(experiment.status());
  const int64_t fewest = stop.has_min_trials() ? std::max(1, stop.min_trials()) : kFewestForBound;
  return results >= fewest && results != status.regret_bound().results();
}

}  // namespace shirabe::experiment
