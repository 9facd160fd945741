// What a trial's metric values come to, and which trial is better. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

// The strategy of the specification for this metric; after SetDefaults every known metric has one.
v1::MetricStrategyType StrategyOf(const v1::ObjectiveSpec& objective, const std::string& metric);

// The objective's name, where it has one, and the additional ones.
std::vector<std::string> WantedMetrics(const v1::ObjectiveSpec& objective);

// Folds one more value into a trial's observation. Exact as long as no (step, metric) is replaced
// and steps do not go back: `latest` is the value at the greatest step, or the last one given
// there.
void AddValue(v1::Observation& observation, const std::string& metric, int64_t step, double value);

const v1::Metric* FindMetric(const v1::Observation& observation, const std::string& metric);

struct ObjectiveValue {
  double value = 0;
  int64_t step = 0;
};

// The objective by its strategy; nullopt where no value was seen or the one that counts is not
// finite.
std::optional<ObjectiveValue> ObjectiveOf(const v1::ObjectiveSpec& objective,
                                          const v1::Observation& observation);

// The objective as something to minimise.
double LossOf(const v1::ObjectiveSpec& objective, double value);
bool ReachesGoal(const v1::ObjectiveSpec& objective, double value);

}  // namespace shirabe::experiment
