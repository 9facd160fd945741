#include "experiment/spec/trial_point.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/parse_spec.h"
#include "suggestion/remote/remote_algorithm.h"
#include "suggestion/space/axes.h"

namespace shirabe::experiment {
namespace {

using suggestion::Axis;

double NearestCoordinate(const Axis& axis, const v1::Assignment& value) {
  if (const auto x = axis.Encode(value); x.ok()) return *x;
  const auto number = suggestion::NumberOf(value);
  if (axis.categorical() || !number.ok()) return axis.Canonical(0);
  if (*number >= suggestion::ValueAt(axis, 1)) return axis.Canonical(1);
  if (*number <= suggestion::ValueAt(axis, 0)) return axis.Canonical(0);
  uint64_t above = 0;  // of a list or of steps: the first value that is greater
  while (above + 1 < axis.levels() && suggestion::ValueAt(axis, axis.Coordinate(above)) < *number) {
    ++above;
  }
  return axis.Coordinate(above);
}

}  // namespace

TrialPoint PointIn(const suggestion::Space& space, int64_t changes, const v1::Trial& trial) {
  TrialPoint found;
  if (trial.point().space() == changes) {
    found.point.assign(trial.point().x().begin(), trial.point().x().end());
    return found;
  }
  found.earlier = true;
  const auto& values = trial.assignments();
  if (const auto point = space.Encode({values.begin(), values.end()}); point.ok()) {
    found.point = space.Canonical(*point);
    return found;
  }
  found.outside = true;
  for (int i = 0; i < space.size(); ++i) {
    const auto value = std::find_if(values.begin(), values.end(), [&](const v1::Assignment& one) {
      return one.name() == space.axis(i).name();
    });
    found.point.push_back(value == values.end() ? space.axis(i).Canonical(0)
                                                : NearestCoordinate(space.axis(i), *value));
  }
  found.point = space.Canonical(found.point);
  return found;
}

StatusOr<TrialPoint> CheckedPoint(const suggestion::Space& space, int64_t changes,
                                  const v1::Trial& trial) {
  TrialPoint found = PointIn(space, changes, trial);
  if (!found.outside) return found;
  return absl::FailedPreconditionError(
      absl::StrCat("trial ", trial.number(), " lies outside of the ranges as they are now: widen ",
                   "them first, or give values within"));
}

std::vector<std::pair<std::string, std::string>> LabelsFor(const v1::Trial& trial,
                                                           const suggestion::Space& space) {
  std::vector<std::pair<std::string, std::string>> labels(trial.labels().begin(),
                                                          trial.labels().end());
  if (space.size() > 0) return labels;
  for (const v1::Assignment& assigned : trial.assignments()) {
    labels.emplace_back(suggestion::kAssignedLabel + assigned.name(), assigned.category());
  }
  return labels;
}

namespace {

using google::protobuf::Value;
using Categories = StartPoints::Categories;

Status Wrong(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError("parameter \"" + name + "\" " + what);
}

std::string TextOf(const Value& value) {
  return value.has_number_value() ? FormatNumber(value.number_value()) : value.string_value();
}

// A category may be written as a number where the list is: 16 stands for "16" and for "16.0".
std::optional<std::string> CategoryOf(const Value& value, const Categories& categories) {
  if (value.has_string_value()) {
    if (!categories.texts.contains(value.string_value())) return std::nullopt;
    return value.string_value();
  }
  const auto found = categories.numbers.find(value.number_value());
  if (found == categories.numbers.end()) return std::nullopt;
  return std::string(found->second);
}

StatusOr<v1::Assignment> Typed(const v1::ParameterSpec& parameter, const Categories& categories,
                               const Value& value) {
  v1::Assignment assignment;
  const std::string& name = parameter.name();
  assignment.set_name(name);
  if (!value.has_number_value() && !value.has_string_value()) {
    return Wrong(name, "must be a number or text");
  }
  if (parameter.parameter_type() == v1::CATEGORICAL) {
    const auto category = CategoryOf(value, categories);
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

std::set<std::string> ConditionalParameters(const v1::ExperimentSpec& spec) {
  std::set<std::string> names;
  for (const v1::ParameterCondition& condition : spec.shirabe().space().conditions()) {
    names.insert(condition.parameter());
  }
  return names;
}

StartPoints::StartPoints(const v1::ExperimentSpec& spec)
    : spec_(spec), conditional_(ConditionalParameters(spec)) {
  for (const auto& parameter : spec.parameters()) {
    Categories& categories = categories_.emplace_back();
    if (parameter.parameter_type() != v1::CATEGORICAL) continue;
    for (const std::string& text : parameter.feasible_space().list()) {
      categories.texts.insert(text);
      if (const auto number = ParseNumber(text)) categories.numbers.emplace(*number, text);
    }
  }
}

StatusOr<std::vector<v1::Assignment>> StartPoints::Read(int index) const {
  CHECK(index >= 0 && index < spec_.shirabe().start_size());
  const auto& fields = spec_.shirabe().start(index).fields();
  std::vector<v1::Assignment> point;
  for (int i = 0; i < spec_.parameters_size(); ++i) {
    const v1::ParameterSpec& parameter = spec_.parameters(i);
    const auto found = fields.find(parameter.name());
    // What a condition leaves out, the space tells.
    if (found == fields.end() && conditional_.contains(parameter.name())) continue;
    if (found == fields.end()) return Wrong(parameter.name(), "is missing: give it a value");
    ASSIGN_OR_RETURN(v1::Assignment assignment, Typed(parameter, categories_[i], found->second));
    point.push_back(std::move(assignment));
  }
  if (static_cast<int>(fields.size()) == spec_.parameters_size()) return point;
  RETURN_IF_ERROR(CheckNames(spec_.shirabe().start(index)));
  return point;
}

Status StartPoints::CheckNames(const google::protobuf::Struct& fields) const {
  const std::vector<std::string> names = Names(spec_);
  for (const auto& [name, value] : fields.fields()) {
    const bool known = std::find(names.begin(), names.end(), name) != names.end();
    if (!known) return Wrong(name, "does not exist" + DidYouMean(name, names));
  }
  return absl::OkStatus();
}

StatusOr<std::vector<v1::Assignment>> StartPoints::ReadSome(
    const google::protobuf::Struct& fields) const {
  RETURN_IF_ERROR(CheckNames(fields));
  std::vector<v1::Assignment> values;
  for (int i = 0; i < spec_.parameters_size(); ++i) {
    const auto found = fields.fields().find(spec_.parameters(i).name());
    if (found == fields.fields().end()) continue;
    ASSIGN_OR_RETURN(v1::Assignment value,
                     Typed(spec_.parameters(i), categories_[i], found->second));
    values.push_back(std::move(value));
  }
  return values;
}

StatusOr<suggestion::Point> WithValues(const v1::ExperimentSpec& spec,
                                       const suggestion::Space& space,
                                       const google::protobuf::Struct& fields,
                                       suggestion::Point point) {
  ASSIGN_OR_RETURN(const auto values, StartPoints(spec).ReadSome(fields));
  std::vector<bool> given(space.size());
  for (const v1::Assignment& value : values) {
    for (int i = 0; i < space.size(); ++i) {
      if (space.axis(i).name() != value.name()) continue;
      const auto coordinate = space.axis(i).Encode(value);
      RETURN_IF_ERROR(Prefix("parameter \"" + value.name() + "\"", coordinate.status()));
      point[i] = *coordinate;
      given[i] = true;
    }
  }
  point = space.Canonical(point);
  RETURN_IF_ERROR(space.CheckValues(point, given));
  return point;
}

// Whether a parameter exists in `point` only by the values that it was given, so that nothing was
// drawn for it in `sample`.
bool HasUndrawn(const suggestion::Space& space, const suggestion::Point& sample,
                const suggestion::Point& point) {
  const std::vector<bool> before = space.Active(space.Canonical(sample)), now = space.Active(point);
  for (int i = 0; i < space.size(); ++i) {
    if (now[i] && !before[i]) return true;
  }
  return false;
}

StatusOr<suggestion::Point> SampleWithValues(const v1::ExperimentSpec& spec,
                                             const suggestion::Space& space,
                                             const google::protobuf::Struct& fields, Rng rng) {
  constexpr int kDraws = 1000;
  StatusOr<suggestion::Point> found = absl::InternalError("no point was drawn");
  for (int i = 0; i < kDraws; ++i) {
    const suggestion::Point sample = space.Sample(rng);
    auto point = WithValues(spec, space, fields, sample);
    if (!space.has_rules()) return point;
    if (point.ok() && !HasUndrawn(space, sample, *point)) return point;
    if (point.ok() || i == 0) found = std::move(point);
  }
  return found;
}

StatusOr<std::vector<v1::Assignment>> StartPoint(const v1::ExperimentSpec& spec, int index) {
  return StartPoints(spec).Read(index);
}

}  // namespace shirabe::experiment
