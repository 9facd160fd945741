// Short ways to write search spaces, for tests and benchmarks.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/util/json_util.h"
#include "suggestion/space/search_space.h"

namespace shirabe::suggestion {

struct Bounds {
  double min = 0;
  double max = 1;
  std::optional<double> step = std::nullopt;
};

inline v1::ParameterSpec Ranged(const std::string& name, v1::ParameterType type, Bounds bounds,
                                v1::Distribution distribution) {
  v1::ParameterSpec spec;
  spec.set_name(name);
  spec.set_parameter_type(type);
  v1::FeasibleSpace* feasible = spec.mutable_feasible_space();
  feasible->set_min(bounds.min);
  feasible->set_max(bounds.max);
  if (bounds.step) feasible->set_step(*bounds.step);
  feasible->set_distribution(distribution);
  return spec;
}

inline v1::ParameterSpec Double(const std::string& name, Bounds bounds,
                                v1::Distribution distribution = v1::UNIFORM) {
  return Ranged(name, v1::DOUBLE, bounds, distribution);
}

inline v1::ParameterSpec Int(const std::string& name, Bounds bounds,
                             v1::Distribution distribution = v1::UNIFORM) {
  return Ranged(name, v1::INT, bounds, distribution);
}

inline v1::ParameterSpec Discrete(const std::string& name, const std::vector<double>& numbers) {
  v1::ParameterSpec spec;
  spec.set_name(name);
  spec.set_parameter_type(v1::DISCRETE);
  for (double number : numbers) spec.mutable_feasible_space()->add_numbers(number);
  return spec;
}

inline v1::ParameterSpec Categorical(const std::string& name,
                                     const std::vector<std::string>& categories) {
  v1::ParameterSpec spec;
  spec.set_name(name);
  spec.set_parameter_type(v1::CATEGORICAL);
  for (const std::string& category : categories) spec.mutable_feasible_space()->add_list(category);
  return spec;
}

// spec.shirabe.space as JSON.
inline v1::SpaceRules RulesOf(const std::string& json) {
  v1::SpaceRules rules;
  CHECK(google::protobuf::util::JsonStringToMessage(json, &rules).ok());
  return rules;
}

inline StatusOr<Space> TryMake(const std::vector<v1::ParameterSpec>& parameters) {
  google::protobuf::RepeatedPtrField<v1::ParameterSpec> specs(parameters.begin(), parameters.end());
  return Space::Create(specs);
}

// Ends the program, with the reason, if the parameters are not a space.
inline Space Make(const std::vector<v1::ParameterSpec>& parameters) {
  return TryMake(parameters).value();
}
// With conditions, forbidden combinations, sums and priors.
inline Space Make(const std::vector<v1::ParameterSpec>& parameters, const std::string& rules) {
  return Make(parameters).WithRules(RulesOf(rules)).value();
}

}  // namespace shirabe::suggestion
