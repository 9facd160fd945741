#include "experiment/start_points.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/number.h"

namespace shirabe::experiment {
namespace {

std::string TextOf(const google::protobuf::Value& value) {
  switch (value.kind_case()) {
    case google::protobuf::Value::kStringValue: return value.string_value();
    case google::protobuf::Value::kNumberValue: return FormatNumber(value.number_value());
    case google::protobuf::Value::kBoolValue: return value.bool_value() ? "true" : "false";
    default: return "";
  }
}

StatusOr<v1::Assignment> ParseAssignment(const v1::ParameterSpec& parameter,
                                         const std::string& text) {
  v1::Assignment assignment;
  assignment.set_name(parameter.name());
  if (parameter.parameter_type() == v1::CATEGORICAL) {
    assignment.set_category(text);
    return assignment;
  }
  const auto number = ParseNumber(text);
  if (!number || !std::isfinite(*number)) {
    return absl::InvalidArgumentError(parameter.name() + ": \"" + text + "\" is not a number");
  }
  if (parameter.parameter_type() == v1::INT) {
    if (*number != std::floor(*number) || std::abs(*number) > 0x1p53) {
      return absl::InvalidArgumentError(parameter.name() + ": \"" + text + "\" is not an integer");
    }
    assignment.set_integer(static_cast<int64_t>(*number));
  } else {
    assignment.set_number(*number);
  }
  return assignment;
}

}  // namespace

StatusOr<suggestion::Point> StartPoint(const v1::Experiment& experiment,
                                       const suggestion::Space& space, int index) {
  const auto& fields = experiment.spec().shirabe().start(index).fields();
  std::vector<v1::Assignment> assignments;
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    const auto found = fields.find(parameter.name());
    if (found == fields.end()) {
      return absl::InvalidArgumentError(parameter.name() +
                                        " has no value: give every parameter one");
    }
    ASSIGN_OR_RETURN(assignments.emplace_back(), ParseAssignment(parameter, TextOf(found->second)));
  }
  for (const auto& [name, value] : fields) {
    bool known = false;
    for (const auto& parameter : experiment.spec().parameters()) known |= parameter.name() == name;
    if (!known) return absl::InvalidArgumentError(name + " is not a parameter of this experiment");
  }
  return space.Encode(assignments);
}

}  // namespace shirabe::experiment
