// The objective of a trial as people see it: once it has ended, what counts; while it runs, what
// its metrics come to so far. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

// The objective, then the additional metrics, each once.
std::vector<std::string> MetricNames(const v1::Experiment& experiment);

struct ShownValue {
  double value = 0;
  int64_t step = 0;
};

// nullopt where no finite value was seen.
std::optional<ShownValue> ShownObjective(const v1::Experiment& experiment, const v1::Trial& trial);

// The value of any metric by the strategy of the experiment: min, max or latest.
std::optional<ShownValue> ShownMetric(const v1::Experiment& experiment, const v1::Trial& trial,
                                      const std::string& metric);

}  // namespace shirabe::client
