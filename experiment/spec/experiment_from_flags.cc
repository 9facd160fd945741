#include "experiment/spec/experiment_from_flags.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/spec/validate_rules.h"

namespace shirabe::experiment {
namespace {

constexpr int kDefaultTrials = 12;
constexpr const char* kContainer = "training-container";
constexpr const char* kForms = "write 0..1, int:1..10, log:1e-5..1e-1, 0..1:0.1 or a,b,c";

Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

bool ConsumePrefix(std::string_view prefix, std::string_view& text) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

StatusOr<double> ParsePart(std::string_view text, const char* what) {
  const auto number = ParseNumber(text);
  if (number) return *number;
  if (text.empty()) return Invalid(std::string("has no ") + what + "; " + kForms);
  return Invalid(std::string(what) + " \"" + std::string(text) + "\" is not a number; " + kForms);
}

Status ParseRange(std::string_view text, v1::FeasibleSpace& space) {
  const size_t dots = text.find("..");
  const std::string_view rest = text.substr(dots + 2);
  const size_t colon = rest.find(':');
  ASSIGN_OR_RETURN(const double min, ParsePart(text.substr(0, dots), "start"));
  ASSIGN_OR_RETURN(const double max, ParsePart(rest.substr(0, colon), "end"));
  space.set_min(min);
  space.set_max(max);
  if (colon == rest.npos) return absl::OkStatus();
  ASSIGN_OR_RETURN(const double step, ParsePart(rest.substr(colon + 1), "step"));
  space.set_step(step);
  return absl::OkStatus();
}

Status ParseList(std::string_view text, v1::ParameterSpec& parameter) {
  bool numbers = true;
  for (const auto& item : absl::StrSplit(absl::string_view(text.data(), text.size()), ',')) {
    if (item.empty()) return Invalid("has an empty value in its list");
    parameter.mutable_feasible_space()->add_list(std::string(item));
    numbers &= ParseNumber(std::string(item)).has_value();
  }
  if (parameter.feasible_space().list_size() < 2) {
    return Invalid("\"" + std::string(text) + "\" is one value only; " + kForms);
  }
  parameter.set_parameter_type(numbers ? v1::DISCRETE : v1::CATEGORICAL);
  return absl::OkStatus();
}

// The part after NAME=.
Status ParseValues(std::string_view text, v1::ParameterSpec& parameter) {
  bool log = false, integer = false;
  for (bool more = true; more;) {
    more = (!log && (log = ConsumePrefix("log:", text))) ||
           (!integer && (integer = ConsumePrefix("int:", text)));
  }
  if (text.find("..") == text.npos) {
    if (!log && !integer) return ParseList(text, parameter);
    return Invalid(std::string(log ? "log:" : "int:") + " needs a range such as 1..10");
  }
  parameter.set_parameter_type(integer ? v1::INT : v1::DOUBLE);
  if (log) parameter.mutable_feasible_space()->set_distribution(v1::LOG_UNIFORM);
  return ParseRange(text, *parameter.mutable_feasible_space());
}

// The same rules as for YAML, in the words of the option.
Status CheckParameter(const v1::ParameterSpec& parameter) {
  v1::ExperimentSpec alone;
  *alone.add_parameters() = parameter;
  Findings findings;
  CheckParameters(alone, findings);
  for (const Finding& finding : findings.Sorted()) {
    if (finding.warning) continue;
    return Invalid(finding.path.substr(finding.path.rfind('.') + 1) + ": " + finding.message);
  }
  return absl::OkStatus();
}

// ---- the command --------------------------------------------------------------------------------

bool IsWord(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

// One argument, with {name} as a reference, and {{ as a brace; }} stays two, as JSON ends with
// them. What a pod would expand is escaped, so that the program gets the argument as it was typed.
StatusOr<std::string> Argument(std::string_view text, const std::vector<std::string>& names,
                               std::set<std::string>& used) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (text[i] == '$' && (next == '$' || next == '(')) {
      out += "$$";
    } else if (text[i] != '{') {
      out += text[i];
    } else if (next == '{') {
      out += text[i++];
    } else {
      const size_t close = std::min(text.find('}', i), text.size());
      const std::string name(text.substr(i + 1, close - i - 1));
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        const auto meant = ClosestKnown(name, names);
        return Invalid("\"" + std::string(text) + "\": {" + name + "} is not a parameter; " +
                       (meant ? "did you mean {" + *meant + "}?" : "write {{ for a brace") +
                       (!meant && IsWord(name) ? ", or add --param " + name + "=RANGE" : "") +
                       (meant ? "" : "; a closing brace is written once"));
      }
      used.insert(name);
      out += "${trialParameters." + name + "}";
      i = close;
    }
  }
  return out;
}

void FillJob(const std::vector<std::string>& command, google::protobuf::Struct& job) {
  auto& fields = *job.mutable_fields();
  fields["apiVersion"].set_string_value("batch/v1");
  fields["kind"].set_string_value("Job");
  auto& pod = *(*(*(*fields["spec"].mutable_struct_value()->mutable_fields())["template"]
                       .mutable_struct_value()
                       ->mutable_fields())["spec"]
                     .mutable_struct_value())
                   .mutable_fields();
  pod["restartPolicy"].set_string_value("Never");
  auto& container = *pod["containers"]
                         .mutable_list_value()
                         ->add_values()
                         ->mutable_struct_value()
                         ->mutable_fields();
  container["name"].set_string_value(kContainer);
  container["image"].set_string_value("local");
  auto& argv = *container["command"].mutable_list_value();
  for (const std::string& argument : command) argv.add_values()->set_string_value(argument);
}

Status FillTemplate(const FlagsExperimentOptions& options, v1::ExperimentSpec& spec) {
  if (options.command.empty()) {
    return Invalid("no command is given: write it after --, as in: -- python3 train.py --lr {lr}");
  }
  std::vector<std::string> names, command;
  for (const auto& parameter : spec.parameters()) names.push_back(parameter.name());
  std::set<std::string> used;
  for (const std::string& text : options.command) {
    ASSIGN_OR_RETURN(std::string argument, Argument(text, names, used));
    command.push_back(std::move(argument));
  }
  for (const std::string& name : names) {
    if (used.count(name) == 0) {
      return Invalid("--param " + name + " is not used: put {" + name + "} into the command");
    }
    auto& bound = *spec.mutable_trial_template()->add_trial_parameters();
    bound.set_name(name);
    bound.set_reference(name);
  }
  FillJob(command, *spec.mutable_trial_template()->mutable_trial_spec());
  return absl::OkStatus();
}

// ---- the rest -----------------------------------------------------------------------------------

Status FillParameters(const FlagsExperimentOptions& options, v1::ExperimentSpec& spec) {
  if (options.params.empty()) {
    return Invalid(
        "no parameter is given: add --param NAME=RANGE, as in --param lr=log:1e-5..1e-1");
  }
  std::set<std::string> names;
  for (const std::string& text : options.params) {
    ASSIGN_OR_RETURN(v1::ParameterSpec parameter, ParseParameterFlag(text));
    if (!names.insert(parameter.name()).second) {
      return Invalid("--param " + parameter.name() + " is given twice: remove one");
    }
    *spec.add_parameters() = std::move(parameter);
  }
  return absl::OkStatus();
}

Status FillObjectives(const FlagsExperimentOptions& options, v1::ExperimentSpec& spec) {
  const auto add = [&](const std::string& metric, v1::ObjectiveType type) {
    if (!spec.has_objective()) {
      spec.mutable_objective()->set_type(type);
      spec.mutable_objective()->set_objective_metric_name(metric);
      return;
    }
    v1::AdditionalObjective& further = *spec.mutable_shirabe()->add_additional_objectives();
    further.set_metric_name(metric);
    further.set_type(type);
  };
  for (const std::string& metric : options.minimize) add(metric, v1::MINIMIZE);
  for (const std::string& metric : options.maximize) add(metric, v1::MAXIMIZE);
  if (spec.has_objective()) return absl::OkStatus();
  return Invalid("no objective is given: add --minimize METRIC or --maximize METRIC");
}

// ..16e9, 0.9.. or 1..5 after the name.
Status FillConstraint(const std::string& text, v1::ResultConstraint& constraint) {
  const std::string option = "--constraint \"" + text + "\": ";
  const size_t equals = text.rfind('='), dots = text.find("..", equals);
  if (equals == std::string::npos || equals == 0 || dots == std::string::npos) {
    return Invalid(option + "write METRIC=RANGE, as in memory=..16e9, recall=0.9.. or size=1..5");
  }
  constraint.set_metric_name(text.substr(0, equals));
  const std::string from = text.substr(equals + 1, dots - equals - 1), to = text.substr(dots + 2);
  const auto min = ParseNumber(from), max = ParseNumber(to);
  if (!from.empty() && !min) return Invalid(option + "\"" + from + "\" is not a number");
  if (!to.empty() && !max) return Invalid(option + "\"" + to + "\" is not a number");
  if (!min && !max) return Invalid(option + "give a least value, a greatest one, or both");
  if (min) constraint.set_min(*min);
  if (max) constraint.set_max(*max);
  return absl::OkStatus();
}

// A grid of six points needs no twelve trials.
int64_t TrialsFor(const v1::ExperimentSpec& spec, int parallel) {
  const uint64_t trials = std::max(kDefaultTrials, parallel);
  const auto space = suggestion::Space::Create(spec.parameters());
  if (!space.ok() || !space->cardinality().finite) return trials;
  return std::min(trials, space->cardinality().count);
}

// The same search has the same name, whatever its counts are, so that it continues.
std::string NameFor(v1::Experiment experiment) {
  experiment.mutable_spec()->clear_max_trial_count();
  experiment.mutable_spec()->clear_max_failed_trial_count();
  experiment.mutable_spec()->clear_parallel_trial_count();
  return absl::StrFormat("quick-%04x", Fingerprint(ToJson(experiment.spec())) & 0xFFFF);
}

// The option that a finding is about.
std::string OptionFor(const std::string& path) {
  static constexpr std::pair<const char*, const char*> kOptions[] = {
      {"metadata.namespace", "--namespace"},
      {"metadata.name", "--name"},
      {"spec.algorithm", "--algorithm"},
      {"spec.maxFailedTrialCount", "--max-failed"},
      {"spec.maxTrialCount", "--max-trials"},
      {"spec.parallelTrialCount", "--parallel"},
      {"spec.shirabe.seed", "--seed"},
      {"spec.parameters", "--param"},
      {"spec.objective", "--minimize or --maximize"},
      {"spec.shirabe.additionalObjectives", "--minimize or --maximize"},
      {"spec.shirabe.constraints", "--constraint"},
  };
  for (const auto& [begin, option] : kOptions) {
    if (path.rfind(begin, 0) == 0) return option;
  }
  return path;
}

}  // namespace

StatusOr<v1::ParameterSpec> ParseParameterFlag(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string option = "--param \"" + text + "\": ";
  if (equals == std::string::npos || equals == 0) {
    return Invalid(option + "write NAME=RANGE, as in lr=log:1e-5..1e-1");
  }
  v1::ParameterSpec parameter;
  parameter.set_name(text.substr(0, equals));
  if (parameter.name().find_first_of("{} ") != std::string::npos) {
    return Invalid(option + "a name holds no braces or blanks");
  }
  const Status values = ParseValues(std::string_view(text).substr(equals + 1), parameter);
  if (!values.ok()) return Invalid(option + Message(values));
  v1::Experiment filled;  // for the numbers of a discrete parameter
  *filled.mutable_spec()->add_parameters() = std::move(parameter);
  SetDefaults(filled);
  const Status good = CheckParameter(filled.spec().parameters(0));
  if (!good.ok()) return Invalid(option + Message(good));
  return filled.spec().parameters(0);
}

StatusOr<v1::Experiment> ExperimentFromFlags(const FlagsExperimentOptions& options) {
  v1::Experiment experiment;
  experiment.set_api_version("kubeflow.org/v1beta1");
  experiment.set_kind("Experiment");
  auto& spec = *experiment.mutable_spec();
  RETURN_IF_ERROR(FillParameters(options, spec));
  RETURN_IF_ERROR(FillObjectives(options, spec));
  for (const std::string& text : options.constraints) {
    RETURN_IF_ERROR(FillConstraint(text, *spec.mutable_shirabe()->add_constraints()));
  }
  RETURN_IF_ERROR(FillTemplate(options, spec));
  spec.mutable_algorithm()->set_algorithm_name(options.algorithm);
  if (options.seed) spec.mutable_shirabe()->set_seed(*options.seed);
  const int parallel = options.parallel.value_or(1);
  const int64_t trials = options.max_trials ? *options.max_trials : TrialsFor(spec, parallel);
  spec.set_max_trial_count(static_cast<int32_t>(trials));
  if (options.max_failed) spec.set_max_failed_trial_count(*options.max_failed);
  spec.set_parallel_trial_count(parallel);
  SetDefaults(experiment);
  auto& metadata = *experiment.mutable_metadata();
  metadata.set_namespace_(options.ns);
  metadata.set_name(options.name.empty() ? NameFor(experiment) : options.name);
  for (const Finding& finding : Validate(experiment)) {
    if (!finding.warning) return Invalid(OptionFor(finding.path) + ": " + finding.message);
  }
  return experiment;
}

}  // namespace shirabe::experiment
