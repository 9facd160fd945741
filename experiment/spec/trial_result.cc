#include "experiment/spec/trial_result.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/names.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "experiment/spec/objective_value.h"

namespace shirabe::experiment {
namespace {

using suggestion::StoppedValue;

// The difference of two finite numbers; where that is too large for one, the largest there is.
double Difference(double a, double b) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return std::clamp(a - b, -kMost, kMost);
}

void AddMargins(const v1::ResultConstraint& constraint, double value, TrialResult& result) {
  if (constraint.has_min()) result.margins.push_back(Difference(value, constraint.min()));
  if (constraint.has_max()) result.margins.push_back(Difference(constraint.max(), value));
}

bool Reaches(v1::ObjectiveType type, double loss, double goal) {
  return loss <= LossOfType(type, goal);
}

}  // namespace

double LossOfType(v1::ObjectiveType type, double value) {
  return type == v1::MAXIMIZE ? -value : value;
}

v1::ExperimentSpec ResultSpecOf(const v1::ExperimentSpec& spec) {
  v1::ExperimentSpec result;
  *result.mutable_objective() = spec.objective();
  *result.mutable_early_stopping() = spec.early_stopping();
  auto& shirabe = *result.mutable_shirabe();
  *shirabe.mutable_additional_objectives() = spec.shirabe().additional_objectives();
  *shirabe.mutable_constraints() = spec.shirabe().constraints();
  if (spec.shirabe().has_objective_reference()) {
    shirabe.set_objective_reference(spec.shirabe().objective_reference());
  }
  return result;
}

bool HasSeveralObjectives(const v1::ExperimentSpec& spec) {
  return spec.shirabe().additional_objectives_size() > 0;
}

bool HasFurtherMetrics(const v1::ExperimentSpec& spec) {
  return HasSeveralObjectives(spec) || spec.shirabe().constraints_size() > 0;
}

std::vector<ObjectiveMetric> ObjectiveMetrics(const v1::ExperimentSpec& spec) {
  std::vector<ObjectiveMetric> metrics = {
      {spec.objective().objective_metric_name(), spec.objective().type()}};
  for (const v1::AdditionalObjective& objective : spec.shirabe().additional_objectives()) {
    metrics.push_back({objective.metric_name(), objective.type()});
  }
  return metrics;
}

int CountBounds(const v1::ExperimentSpec& spec) {
  int bounds = 0;
  for (const v1::ResultConstraint& constraint : spec.shirabe().constraints()) {
    bounds += constraint.has_min() + constraint.has_max();
  }
  return bounds;
}

bool TrialResult::feasible() const {
  return std::all_of(margins.begin(), margins.end(), [](double margin) { return margin >= 0; });
}

std::optional<double> CountedValue(const v1::ExperimentSpec& spec, const v1::Observation& metrics,
                                   const std::string& metric) {
  v1::ObjectiveSpec one;
  one.set_type(spec.objective().type());
  one.set_objective_metric_name(metric);
  *one.mutable_metric_strategies() = spec.objective().metric_strategies();
  const auto found = ObjectiveOf(one, metrics);
  return found ? std::optional(found->value) : std::nullopt;
}

suggestion::StopProblem StopProblemOf(const v1::ExperimentSpec& spec) {
  suggestion::StopProblem problem{.maximize = spec.objective().type() == v1::MAXIMIZE};
  for (const v1::Setting& setting : spec.early_stopping().algorithm_settings()) {
    problem.settings.emplace_back(setting.name(), setting.value());
  }
  for (const v1::AdditionalObjective& objective : spec.shirabe().additional_objectives()) {
    problem.further_maximize.push_back(objective.type() == v1::MAXIMIZE);
  }
  return problem;
}

StoppedValue StoppedValueOf(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  if (trial.phase() != v1::TRIAL_EARLY_STOPPED || !trial.has_objective()) {
    return StoppedValue::kResult;
  }
  const auto* rule =
      Registry<suggestion::StopperInfo>::Get().Find(spec.early_stopping().algorithm_name());
  if (rule == nullptr || rule->value_of_stopped == nullptr) return StoppedValue::kResult;
  const StoppedValue value = rule->value_of_stopped(StopProblemOf(spec), trial.objective());
  // One that something else has ended counts as it did; that it makes no sense is true of any.
  const bool by_rule = trial.reason() == kStoppedByRule;
  return value == StoppedValue::kPartial && !by_rule ? StoppedValue::kResult : value;
}

namespace {

// Of one whose value counts, or is a part of one.
std::optional<TrialResult> MeasuredOf(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  if (!trial.has_objective()) return std::nullopt;
  TrialResult result{.losses = {LossOf(spec.objective(), trial.objective())}};
  const auto value = [&](const std::string& metric) {
    return CountedValue(spec, trial.observation(), metric);
  };
  for (const v1::AdditionalObjective& objective : spec.shirabe().additional_objectives()) {
    const auto found = value(objective.metric_name());
    if (!found) return std::nullopt;
    result.losses.push_back(LossOfType(objective.type(), *found));
  }
  for (const v1::ResultConstraint& constraint : spec.shirabe().constraints()) {
    const auto found = value(constraint.metric_name());
    if (!found) return std::nullopt;
    AddMargins(constraint, *found, result);
  }
  return result;
}

}  // namespace

std::optional<TrialResult> ResultOf(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  if (StoppedValueOf(spec, trial) != StoppedValue::kResult) return std::nullopt;
  return MeasuredOf(spec, trial);
}

std::string MissingFrom(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  const auto missing = [&](const std::string& metric, const std::string& field) -> std::string {
    if (CountedValue(spec, trial.observation(), metric)) return "";
    const bool seen = FindMetric(trial.observation(), metric) != nullptr;
    return Printable(metric) +
           (seen ? " was never a finite number that counts: " : " was never reported: ") + field +
           " asks for it";
  };
  for (const v1::AdditionalObjective& objective : spec.shirabe().additional_objectives()) {
    std::string why = missing(objective.metric_name(), "spec.shirabe.additionalObjectives");
    if (!why.empty()) return why;
  }
  for (const v1::ResultConstraint& constraint : spec.shirabe().constraints()) {
    std::string why = missing(constraint.metric_name(), "spec.shirabe.constraints");
    if (!why.empty()) return why;
  }
  return "";
}

double BrokenBy(const v1::ResultConstraint& constraint, double value) {
  double broken = 0;
  if (constraint.has_min()) broken = std::max(broken, Difference(constraint.min(), value));
  if (constraint.has_max()) broken = std::max(broken, Difference(value, constraint.max()));
  return broken;
}

bool CanBreakForGood(const v1::ExperimentSpec& spec, const v1::ResultConstraint& constraint) {
  const v1::MetricStrategyType strategy = StrategyOf(spec.objective(), constraint.metric_name());
  return (strategy == v1::MAX && constraint.has_max()) ||
         (strategy == v1::MIN && constraint.has_min());
}

std::string WhyBrokenForGood(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  for (const v1::ResultConstraint& constraint : spec.shirabe().constraints()) {
    if (!constraint.stop_early() || !CanBreakForGood(spec, constraint)) continue;
    const v1::Metric* metric = FindMetric(trial.observation(), constraint.metric_name());
    if (metric == nullptr) continue;
    const bool most = StrategyOf(spec.objective(), metric->name()) == v1::MAX;
    const bool broken = most ? metric->has_max() && metric->max() > constraint.max()
                             : metric->has_min() && metric->min() < constraint.min();
    if (!broken) continue;
    return absl::StrCat(
        "at step ", most ? metric->max_step() : metric->min_step(), " ", Printable(metric->name()),
        " ", FormatNumber(most ? metric->max() : metric->min()), most ? " > max " : " < min ",
        FormatNumber(most ? constraint.max() : constraint.min()), ": broken by ",
        FormatNumber(BrokenBy(constraint, most ? metric->max() : metric->min())), ", and its ",
        most ? "greatest" : "least", " value counts");
  }
  return "";
}

suggestion::TrialSummary TrialSummaryOf(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  suggestion::TrialSummary view;
  view.last_step = trial.last_step();
  view.parent = trial.parent().trial();
  view.early_stopped = trial.phase() == v1::TRIAL_EARLY_STOPPED;
  if (!IsTerminal(trial.phase())) return view;
  const bool usable = trial.phase() == v1::TRIAL_SUCCEEDED || view.early_stopped;
  view.state = suggestion::TrialState::kInfeasible;
  const StoppedValue value = StoppedValueOf(spec, trial);
  view.partial = value == StoppedValue::kPartial;
  if (!usable || value == StoppedValue::kNone) return view;
  if (auto result = MeasuredOf(spec, trial)) {
    view.state = suggestion::TrialState::kCompleted;
    view.loss = result->losses[0];
    view.further_losses.assign(result->losses.begin() + 1, result->losses.end());
    view.margins = std::move(result->margins);
  }
  return view;
}

bool IsOfUse(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  return TrialSummaryOf(spec, trial).state == suggestion::TrialState::kCompleted;
}

bool ReachesGoals(const v1::ExperimentSpec& spec, const std::vector<double>& losses) {
  bool any = false;
  if (spec.objective().has_goal()) {
    any = true;
    if (!Reaches(spec.objective().type(), losses[0], spec.objective().goal())) return false;
  }
  for (int i = 0; i < spec.shirabe().additional_objectives_size(); ++i) {
    const v1::AdditionalObjective& objective = spec.shirabe().additional_objectives(i);
    if (!objective.has_goal()) continue;
    any = true;
    if (!Reaches(objective.type(), losses[i + 1], objective.goal())) return false;
  }
  return any;
}

std::vector<double> ValuesOf(const v1::ExperimentSpec& spec, const std::vector<double>& losses) {
  std::vector<double> values = {LossOf(spec.objective(), losses[0])};
  for (size_t i = 1; i < losses.size(); ++i) {
    const auto type = spec.shirabe().additional_objectives(static_cast<int>(i) - 1).type();
    values.push_back(LossOfType(type, losses[i]));
  }
  return values;
}

// It is its own inverse.
std::vector<double> LossesOf(const v1::ExperimentSpec& spec,
                             const google::protobuf::RepeatedField<double>& values) {
  return ValuesOf(spec, {values.begin(), values.end()});
}

void OfferBest(const v1::Trial& trial, v1::Experiment& experiment) {
  const auto result = ResultOf(experiment.spec(), trial);
  if (!result || !result->feasible()) return;
  v1::OptimalTrial& best = *experiment.mutable_status()->mutable_current_optimal_trial();
  v1::Trial before;
  if (best.has_objective()) before.set_objective(best.objective());
  *before.mutable_observation() = best.observation();
  const auto known = ResultOf(experiment.spec(), before);
  if (known && result->losses > known->losses) return;
  // Of equals the first to end; of several objectives the one that is on the front.
  const bool first = HasSeveralObjectives(experiment.spec()) && trial.number() < best.number();
  if (known && result->losses == known->losses && !first) return;
  best.set_best_trial_name(TrialName({ExperimentKeyOf(trial), trial.number()}));
  best.set_number(trial.number());
  *best.mutable_parameter_assignments() = trial.assignments();
  *best.mutable_observation() = trial.observation();
  best.set_objective(trial.objective());
  best.set_step(trial.objective_step());
}

bool IsTerminal(v1::TrialPhase phase) {
  return phase != v1::TRIAL_PENDING && phase != v1::TRIAL_RUNNING;
}

}  // namespace shirabe::experiment
