#include "experiment/spec/objective_value.h"

#include <cmath>

namespace shirabe::experiment {
namespace {

v1::Metric& MetricOf(v1::Observation& observation, const std::string& name) {
  for (v1::Metric& metric : *observation.mutable_metrics()) {
    if (metric.name() == name) return metric;
  }
  v1::Metric* metric = observation.add_metrics();
  metric->set_name(name);
  return *metric;
}

}  // namespace

v1::MetricStrategyType StrategyOf(const v1::ObjectiveSpec& objective, const std::string& metric) {
  for (const v1::MetricStrategy& strategy : objective.metric_strategies()) {
    if (strategy.name() == metric) return strategy.value();
  }
  return objective.type() == v1::MAXIMIZE ? v1::MAX : v1::MIN;
}

std::vector<std::string> WantedMetrics(const v1::ObjectiveSpec& objective) {
  std::vector<std::string> metrics;
  if (!objective.objective_metric_name().empty()) {
    metrics.push_back(objective.objective_metric_name());
  }
  for (const std::string& name : objective.additional_metric_names()) metrics.push_back(name);
  return metrics;
}

void AddValue(v1::Observation& observation, const std::string& name, int64_t step, double value) {
  v1::Metric& metric = MetricOf(observation, name);
  const bool first = metric.count() == 0;
  metric.set_count(metric.count() + 1);
  if (first || step >= metric.latest_step()) {
    metric.set_latest(value);
    metric.set_latest_step(step);
  }
  if (!std::isfinite(value)) return;
  if (!metric.has_min() || value < metric.min()) {
    metric.set_min(value);
    metric.set_min_step(step);
  }
  if (!metric.has_max() || value > metric.max()) {
    metric.set_max(value);
    metric.set_max_step(step);
  }
}

const v1::Metric* FindMetric(const v1::Observation& observation, const std::string& name) {
  for (const v1::Metric& metric : observation.metrics()) {
    if (metric.name() == name) return &metric;
  }
  return nullptr;
}

std::optional<ObjectiveValue> ObjectiveOf(const v1::ObjectiveSpec& objective,
                                          const v1::Observation& observation) {
  const v1::Metric* metric = FindMetric(observation, objective.objective_metric_name());
  if (metric == nullptr) return std::nullopt;
  switch (StrategyOf(objective, metric->name())) {
    case v1::MAX:
      if (!metric->has_max()) return std::nullopt;
      return ObjectiveValue{metric->max(), metric->max_step()};
    case v1::LATEST:
      if (!std::isfinite(metric->latest())) return std::nullopt;
      return ObjectiveValue{metric->latest(), metric->latest_step()};
    default:
      if (!metric->has_min()) return std::nullopt;
      return ObjectiveValue{metric->min(), metric->min_step()};
  }
}

double LossOf(const v1::ObjectiveSpec& objective, double value) {
  return objective.type() == v1::MAXIMIZE ? -value : value;
}

bool ReachesGoal(const v1::ObjectiveSpec& objective, double value) {
  if (!objective.has_goal()) return false;
  return LossOf(objective, value) <= LossOf(objective, objective.goal());
}

}  // namespace shirabe::experiment
