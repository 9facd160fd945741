#include "client/objective.h"

#include <algorithm>

#include "experiment/objective.h"

namespace shirabe::client {

std::vector<std::string> MetricNames(const v1::Experiment& experiment) {
  const v1::ObjectiveSpec& objective = experiment.spec().objective();
  std::vector<std::string> names = {objective.objective_metric_name()};
  for (const std::string& name : objective.additional_metric_names()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::optional<ShownValue> ShownObjective(const v1::Experiment& experiment, const v1::Trial& trial) {
  if (trial.has_objective()) return ShownValue{trial.objective(), trial.objective_step()};
  const auto value = experiment::ObjectiveOf(experiment.spec().objective(), trial.observation());
  if (!value) return std::nullopt;
  return ShownValue{value->value, value->step};
}

std::optional<ShownValue> ShownMetric(const v1::Experiment& experiment, const v1::Trial& trial,
                                      const std::string& name) {
  const v1::Metric* metric = experiment::FindMetric(trial.observation(), name);
  if (metric == nullptr) return std::nullopt;
  switch (experiment::StrategyOf(experiment.spec().objective(), name)) {
    case v1::MIN:
      if (metric->has_min()) return ShownValue{metric->min(), metric->min_step()};
      break;
    case v1::MAX:
      if (metric->has_max()) return ShownValue{metric->max(), metric->max_step()};
      break;
    default: break;
  }
  if (!metric->has_latest()) return std::nullopt;
  return ShownValue{metric->latest(), metric->latest_step()};
}

}  // namespace shirabe::client
