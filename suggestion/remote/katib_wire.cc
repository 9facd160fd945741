#include "suggestion/remote/katib_wire.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/text/number.h"

namespace shirabe::suggestion {
namespace {

using google::protobuf::RepeatedPtrField;

constexpr size_t kMaxShownBytes = 80;  // characters of the service's text in a message

std::string Quoted(const std::string& text) {
  const std::string shown = Printable(text.substr(0, kMaxShownBytes));
  return "\"" + shown + (text.size() > kMaxShownBytes ? "…\"" : "\"");
}

// ---- ours → theirs -----------------------------------------------------------------------------

// Both enums have the same numbers; theirs are the original.
template <class To, class From>
To SameNumber(From value) {
  return static_cast<To>(static_cast<int>(value));
}

katib::ParameterSpec KatibParameter(const v1::ParameterSpec& from) {
  katib::ParameterSpec to;
  to.set_name(from.name());
  to.set_parameter_type(SameNumber<katib::ParameterType>(from.parameter_type()));
  const v1::FeasibleSpace& ours = from.feasible_space();
  katib::FeasibleSpace& theirs = *to.mutable_feasible_space();
  if (ours.has_min()) theirs.set_min(FormatNumber(ours.min()));
  if (ours.has_max()) theirs.set_max(FormatNumber(ours.max()));
  if (ours.has_step()) theirs.set_step(FormatNumber(ours.step()));
  *theirs.mutable_list() = ours.list();
  theirs.set_distribution(SameNumber<katib::Distribution>(ours.distribution()));
  return to;
}

template <class Setting>
void CopySettings(const RepeatedPtrField<v1::Setting>& from, RepeatedPtrField<Setting>* to) {
  for (const v1::Setting& setting : from) {
    Setting& copy = *to->Add();
    copy.set_name(setting.name());
    copy.set_value(setting.value());
  }
}

katib::ObjectiveSpec KatibObjective(const v1::ObjectiveSpec& from) {
  katib::ObjectiveSpec to;
  to.set_type(SameNumber<katib::ObjectiveType>(from.type()));
  if (from.has_goal()) to.set_goal(from.goal());
  to.set_objective_metric_name(from.objective_metric_name());
  *to.mutable_additional_metric_names() = from.additional_metric_names();
  return to;
}

katib::NasConfig KatibNas(const v1::NasConfig& from) {
  katib::NasConfig to;
  katib::GraphConfig& graph = *to.mutable_graph_config();
  graph.set_num_layers(from.graph_config().num_layers());
  *graph.mutable_input_sizes() = from.graph_config().input_sizes();
  *graph.mutable_output_sizes() = from.graph_config().output_sizes();
  for (const v1::Operation& operation : from.operations()) {
    katib::Operation& copy = *to.mutable_operations()->add_operation();
    copy.set_operation_type(operation.operation_type());
    for (const v1::ParameterSpec& parameter : operation.parameters()) {
      *copy.mutable_parameter_specs()->add_parameters() = KatibParameter(parameter);
    }
  }
  return to;
}

// ---- theirs → ours -----------------------------------------------------------------------------

// "" is how their messages say that there is none.
StatusOr<std::optional<double>> ReadNumber(const std::string& field, const std::string& text) {
  if (text.empty()) return std::optional<double>();
  const auto number = ParseNumber(text);
  if (number) return std::optional<double>(*number);
  return absl::InvalidArgumentError(field + " " + Quoted(text) +
                                    " is not a number; write one such as 0.1");
}

Status ReadFeasible(const katib::ParameterSpec& from, const std::string& path,
                    v1::ParameterSpec& to) {
  const katib::FeasibleSpace& theirs = from.feasible_space();
  v1::FeasibleSpace& ours = *to.mutable_feasible_space();
  ASSIGN_OR_RETURN(const auto min, ReadNumber(path + ".feasibleSpace.min", theirs.min()));
  ASSIGN_OR_RETURN(const auto max, ReadNumber(path + ".feasibleSpace.max", theirs.max()));
  ASSIGN_OR_RETURN(const auto step, ReadNumber(path + ".feasibleSpace.step", theirs.step()));
  if (min) ours.set_min(*min);
  if (max) ours.set_max(*max);
  // Katib's services cut what a step gives to whole numbers: with one below 1 that is all of them.
  const bool whole = to.parameter_type() == v1::INT && step && *step > 0 && *step < 1;
  if (step && !whole) ours.set_step(*step);
  *ours.mutable_list() = theirs.list();
  if (v1::Distribution_IsValid(theirs.distribution())) {
    ours.set_distribution(SameNumber<v1::Distribution>(theirs.distribution()));
  }
  if (to.parameter_type() != v1::DISCRETE) return absl::OkStatus();
  for (const std::string& text : theirs.list()) {
    ASSIGN_OR_RETURN(const auto number, ReadNumber(path + ".feasibleSpace.list", text));
    if (!number)
      return absl::InvalidArgumentError(path + ".feasibleSpace.list holds \"\"; remove it");
    ours.add_numbers(*number);
  }
  return absl::OkStatus();
}

StatusOr<v1::ParameterSpec> ReadParameter(const katib::ParameterSpec& from,
                                          const std::string& path) {
  v1::ParameterSpec to;
  to.set_name(from.name());
  const bool known = from.parameter_type() != katib::UNKNOWN_TYPE &&
                     katib::ParameterType_IsValid(from.parameter_type());
  if (!known) {
    return absl::InvalidArgumentError(
        path + ".parameterType is required: one of double, int, discrete, categorical");
  }
  to.set_parameter_type(SameNumber<v1::ParameterType>(from.parameter_type()));
  RETURN_IF_ERROR(ReadFeasible(from, path, to));
  return to;
}

template <class Setting>
void ReadSettings(const RepeatedPtrField<Setting>& from, RepeatedPtrField<v1::Setting>* to) {
  for (const Setting& setting : from) {
    v1::Setting& copy = *to->Add();
    copy.set_name(setting.name());
    copy.set_value(setting.value());
  }
}

Status ReadObjective(const katib::ObjectiveSpec& from, v1::ObjectiveSpec& to) {
  if (!katib::ObjectiveType_IsValid(from.type())) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec.objective.type is ", from.type(), ": give minimize or maximize"));
  }
  to.set_type(SameNumber<v1::ObjectiveType>(from.type()));
  if (from.goal() != 0) to.set_goal(from.goal());
  to.set_objective_metric_name(from.objective_metric_name());
  *to.mutable_additional_metric_names() = from.additional_metric_names();
  return absl::OkStatus();
}

StatusOr<v1::NasConfig> ReadNas(const katib::NasConfig& from) {
  v1::NasConfig to;
  v1::GraphConfig& graph = *to.mutable_graph_config();
  graph.set_num_layers(from.graph_config().num_layers());
  *graph.mutable_input_sizes() = from.graph_config().input_sizes();
  *graph.mutable_output_sizes() = from.graph_config().output_sizes();
  for (const katib::Operation& operation : from.operations().operation()) {
    v1::Operation& copy = *to.add_operations();
    copy.set_operation_type(operation.operation_type());
    for (const katib::ParameterSpec& parameter : operation.parameter_specs().parameters()) {
      ASSIGN_OR_RETURN(*copy.add_parameters(),
                       ReadParameter(parameter, "spec.nasConfig.operations.parameters"));
    }
  }
  return to;
}

// ---- points ------------------------------------------------------------------------------------

// The list's own text of a number, where there is one.
std::string TextOf(const v1::FeasibleSpace& feasible, double number) {
  for (int i = 0; i < feasible.numbers_size() && i < feasible.list_size(); ++i) {
    if (feasible.numbers(i) == number) return feasible.list(i);
  }
  return FormatNumber(number);
}

std::string FormatValue(const v1::FeasibleSpace& feasible, const v1::Assignment& value) {
  switch (value.value_case()) {
    case v1::Assignment::kNumber: return TextOf(feasible, value.number());
    case v1::Assignment::kInteger:
      return feasible.numbers_size() > 0 ? TextOf(feasible, static_cast<double>(value.integer()))
                                         : std::to_string(value.integer());
    case v1::Assignment::kCategory: return value.category();
    case v1::Assignment::VALUE_NOT_SET: break;
  }
  return "";
}

// The point of assignments that are all there, in the order of the parameters, and good: nearly
// always. Requests have thousands of them, so that nothing is allocated for each.
std::optional<Point> ParseUsual(const Space& space, const KatibAssignments& assignments) {
  if (assignments.size() != space.size()) return std::nullopt;
  Point point;
  point.reserve(assignments.size());
  v1::Assignment value;
  for (int i = 0; i < space.size(); ++i) {
    const Axis& axis = space.axis(i);
    if (assignments[i].name() != axis.name()) return std::nullopt;
    if (axis.categorical()) {
      value.set_category(assignments[i].value());
    } else {
      const auto number = ParseNumber(assignments[i].value());
      if (!number || !std::isfinite(*number)) return std::nullopt;
      value.set_number(*number);
    }
    const auto x = axis.Encode(value);
    if (!x.ok()) return std::nullopt;
    point.push_back(*x);
  }
  return point;
}

StatusOr<v1::Assignment> ReadValue(const Axis* axis, const katib::ParameterAssignment& from) {
  v1::Assignment to;
  to.set_name(axis != nullptr ? axis->name() : Printable(from.name().substr(0, kMaxShownBytes)));
  if (axis == nullptr || axis->categorical()) {  // that it is unknown is for Encode to say
    to.set_category(from.value());
    return to;
  }
  const auto number = ParseNumber(from.value());
  if (!number || !std::isfinite(*number)) {
    return absl::InvalidArgumentError("parameter " + Quoted(from.name()) + ": " +
                                      Quoted(from.value()) +
                                      (number ? " is not finite" : " is not a number"));
  }
  to.set_number(*number);
  return to;
}

}  // namespace

katib::Experiment ToKatib(const v1::Experiment& experiment) {
  katib::Experiment to;
  to.set_name(experiment.metadata().name());
  const v1::ExperimentSpec& from = experiment.spec();
  katib::ExperimentSpec& spec = *to.mutable_spec();
  for (const v1::ParameterSpec& parameter : from.parameters()) {
    *spec.mutable_parameter_specs()->add_parameters() = KatibParameter(parameter);
  }
  *spec.mutable_objective() = KatibObjective(from.objective());
  spec.mutable_algorithm()->set_algorithm_name(from.algorithm().algorithm_name());
  CopySettings(from.algorithm().algorithm_settings(),
               spec.mutable_algorithm()->mutable_algorithm_settings());
  if (from.has_early_stopping()) {
    spec.mutable_early_stopping()->set_algorithm_name(from.early_stopping().algorithm_name());
    CopySettings(from.early_stopping().algorithm_settings(),
                 spec.mutable_early_stopping()->mutable_algorithm_settings());
  }
  spec.set_parallel_trial_count(from.parallel_trial_count());
  spec.set_max_trial_count(from.max_trial_count());
  if (from.has_nas_config()) *spec.mutable_nas_config() = KatibNas(from.nas_config());
  return to;
}

StatusOr<v1::Experiment> FromKatib(const katib::Experiment& experiment) {
  v1::Experiment to;
  to.mutable_metadata()->set_name(experiment.name());
  to.mutable_metadata()->set_namespace_("default");
  const katib::ExperimentSpec& from = experiment.spec();
  v1::ExperimentSpec& spec = *to.mutable_spec();
  for (int i = 0; i < from.parameter_specs().parameters_size(); ++i) {
    ASSIGN_OR_RETURN(*spec.add_parameters(),
                     ReadParameter(from.parameter_specs().parameters(i),
                                   absl::StrCat("spec.parameters[", i, "]")));
  }
  RETURN_IF_ERROR(ReadObjective(from.objective(), *spec.mutable_objective()));
  spec.mutable_algorithm()->set_algorithm_name(from.algorithm().algorithm_name());
  ReadSettings(from.algorithm().algorithm_settings(),
               spec.mutable_algorithm()->mutable_algorithm_settings());
  if (!from.early_stopping().algorithm_name().empty()) {
    spec.mutable_early_stopping()->set_algorithm_name(from.early_stopping().algorithm_name());
    ReadSettings(from.early_stopping().algorithm_settings(),
                 spec.mutable_early_stopping()->mutable_algorithm_settings());
  }
  if (from.parallel_trial_count() > 0) spec.set_parallel_trial_count(from.parallel_trial_count());
  if (from.max_trial_count() > 0) spec.set_max_trial_count(from.max_trial_count());
  if (from.has_nas_config()) {
    ASSIGN_OR_RETURN(*spec.mutable_nas_config(), ReadNas(from.nas_config()));
  }
  return to;
}

KatibAssignments FormatPoint(const v1::ExperimentSpec& spec, const Space& space,
                             const Point& point) {
  KatibAssignments assignments;
  const std::vector<v1::Assignment> values = space.Decode(point);
  for (int i = 0; i < space.size(); ++i) {
    katib::ParameterAssignment& assignment = *assignments.Add();
    assignment.set_name(values[i].name());
    assignment.set_value(FormatValue(spec.parameters(i).feasible_space(), values[i]));
  }
  return assignments;
}

StatusOr<Point> ParsePoint(const Space& space, const KatibAssignments& assignments) {
  if (auto point = ParseUsual(space, assignments)) return *std::move(point);
  std::vector<v1::Assignment> values;
  for (const katib::ParameterAssignment& assignment : assignments) {
    ASSIGN_OR_RETURN(values.emplace_back(), ReadValue(space.Find(assignment.name()), assignment));
  }
  return space.Encode(values);
}

}  // namespace shirabe::suggestion
