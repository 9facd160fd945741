// What differs between two specifications of one experiment, field by field, with defaults filled
// in on both sides so that what is only written differently is the same. Called by diff and edit.
// Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"
#include "view/record_json.h"

namespace shirabe::view {

struct SpecDifference {
  std::string path;  // spec.maxTrialCount
  std::optional<Json> stored;
  std::optional<Json> wanted;
  bool changeable = false;  // apply would take it; else it makes another search
};

// In the order of the fields; empty if they are the same.
std::vector<SpecDifference> DiffSpecs(const v1::Experiment& stored, const v1::Experiment& wanted);

// - path: value and + path: value, a line each; what apply would refuse says so.
std::string DifferenceText(const SpecDifference& difference);
// {field, stored, wanted, changeable}; null where there is nothing.
Json DifferenceJson(const SpecDifference& difference);

}  // namespace shirabe::view
