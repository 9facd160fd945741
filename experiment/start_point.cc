// spec.shirabe.start: free-form values, typed by the parameters they are for.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "base/number.h"
#include "experiment/schema.h"
#include "experiment/spec.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::Value;

Status Wrong(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError("parameter \"" + name + "\" " + what);
}

std::string TextOf(const Value& value) {
  return value.has_number_value() ? FormatNumber(value.number_value()) : value.string_value();
}

// A category may be written as a number where the list is: 16 stands for "16" and for "16.0".
std::optional<std::string> CategoryOf(const Value& value, const v1::FeasibleSpace& space) {
  for (const std::string& text : space.list()) {
    if (value.has_string_value() ? text == value.string_value()
                                 : ParseNumber(text) == value.number_value()) {
      return text;
    }
  }
  return std::nullopt;
}

StatusOr<v1::Assignment> Typed(const v1::ParameterSpec& parameter, const Value& value) {
  v1::Assignment assignment;
  const std::string& name = parameter.name();
  assignment.set_name(name);
  if (!value.has_number_value() && !value.has_string_value()) {
    return Wrong(name, "must be a number or text");
  }
  if (parameter.parameter_type() == v1::CATEGORICAL) {
    const auto category = CategoryOf(value, parameter.feasible_space());
    if (!category) return Wrong(name, "has no value \"" + TextOf(value) + "\" in its list");
    assignment.set_category(*category);
    return assignment;
  }
  const auto number = value.has_number_value() ? std::optional(value.number_value())
                                               : ParseNumber(value.string_value());
  if (!number || !std::isfinite(*number)) {
    return Wrong(name, "must be a number, not \"" + TextOf(value) + "\"");
  }
  if (parameter.parameter_type() != v1::INT) {
    assignment.set_number(*number);
  } else if (*number != std::floor(*number) || std::abs(*number) > 0x1p53) {
    return Wrong(name, "must be an integer, not " + FormatNumber(*number));
  } else {
    assignment.set_integer(static_cast<int64_t>(*number));
  }
  return assignment;
}

std::vector<std::string> Names(const v1::ExperimentSpec& spec) {
  std::vector<std::string> names;
  for (const auto& parameter : spec.parameters()) names.push_back(parameter.name());
  return names;
}

}  // namespace

StatusOr<std::vector<v1::Assignment>> StartPoint(const v1::ExperimentSpec& spec, int index) {
  CHECK(index >= 0 && index < spec.shirabe().start_size());
  const auto& fields = spec.shirabe().start(index).fields();
  std::vector<v1::Assignment> point;
  for (const auto& parameter : spec.parameters()) {
    const auto found = fields.find(parameter.name());
    if (found == fields.end()) return Wrong(parameter.name(), "is missing: give it a value");
    ASSIGN_OR_RETURN(v1::Assignment assignment, Typed(parameter, found->second));
    point.push_back(std::move(assignment));
  }
  if (static_cast<int>(fields.size()) == spec.parameters_size()) return point;
  const std::vector<std::string> names = Names(spec);
  for (const auto& [name, value] : fields) {
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (!known) return Wrong(name, "does not exist" + DidYouMean(name, names));
  }
  return point;
}

}  // namespace shirabe::experiment
