#include "experiment/spec/range_changes.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/spec/trial_point.h"
#include "suggestion/algorithm.h"

namespace shirabe::experiment {
namespace {

Status Refused(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError("parameter " + Quoted(name) + ": " + what);
}

bool HasList(const v1::ParameterSpec& parameter) {
  return parameter.parameter_type() == v1::DISCRETE ||
         parameter.parameter_type() == v1::CATEGORICAL;
}

// Whether there is a setting of the algorithm that says how long a trial trains.
bool IsResource(const v1::ExperimentSpec& spec, const std::string& name) {
  for (const v1::Setting& setting : spec.algorithm().algorithm_settings()) {
    if (setting.name() == "resource_name" && setting.value() == name) return true;
  }
  return false;
}

Status CheckWhatChanges(const v1::ExperimentSpec& spec, const v1::ParameterSpec& parameter,
                        const v1::FeasibleSpace& change) {
  const std::string& name = parameter.name();
  if (change.has_step() || change.distribution() != v1::DISTRIBUTION_UNSPECIFIED) {
    return Refused(name, absl::StrCat(change.has_step() ? "a step" : "a distribution",
                                      " does not change while an experiment runs: leave it out"));
  }
  const bool ends = change.has_min() || change.has_max();
  if (HasList(parameter) ? ends || change.list_size() == 0 : !ends || change.list_size() > 0) {
    return Refused(name, HasList(parameter)
                             ? "has a list: give all of its values, as in optimizer=sgd,adam"
                             : "has a range: give min, max or both, as in lr=1e-5..0.5");
  }
  if (IsResource(spec, name)) {
    return Refused(name,
                   absl::StrCat("is the resource_name of ", spec.algorithm().algorithm_name(),
                                ", and what has been trained was made of its values: start a ",
                                "new experiment, with this one as spec.shirabe.warmStart"));
  }
  return absl::OkStatus();
}

// Where steps are counted from: other values than before would all be new ones.
Status CheckSteps(const v1::ParameterSpec& parameter, const v1::FeasibleSpace& change) {
  const v1::FeasibleSpace& range = parameter.feasible_space();
  if (!range.has_step() || !change.has_min() || !(range.step() > 0)) return absl::OkStatus();
  const double steps = (change.min() - range.min()) / range.step();
  if (std::abs(steps - std::round(steps)) <= 1e-9 * std::max(1.0, std::abs(steps))) {
    return absl::OkStatus();
  }
  return Refused(
      parameter.name(),
      absl::StrCat("min ", FormatNumber(change.min()), " is no whole number of steps of ",
                   FormatNumber(range.step()), " from ", FormatNumber(range.min()),
                   ", so that no value would be one of those tried: move it by steps"));
}

void Merge(const v1::FeasibleSpace& change, v1::FeasibleSpace& range) {
  if (change.has_min()) range.set_min(change.min());
  if (change.has_max()) range.set_max(change.max());
  if (change.list_size() > 0) {
    *range.mutable_list() = change.list();
    range.clear_numbers();
  }
}

// Those that have been tried may lie where they like.
Status CheckStartsToCome(const v1::ExperimentSpec& spec, int64_t tried) {
  if (tried >= spec.shirabe().start_size()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const suggestion::Space space, SearchSpaceOf(spec));
  const StartPoints starts(spec);
  for (int i = static_cast<int>(tried); i < spec.shirabe().start_size(); ++i) {
    const auto values = starts.Read(i);
    const Status status = values.ok() ? space.Encode(*values).status() : values.status();
    RETURN_IF_ERROR(Prefix(ItemPath("spec.shirabe.start", i) + " is still to be tried", status));
  }
  return absl::OkStatus();
}

std::string RangeWords(const v1::ParameterSpec& parameter) {
  const v1::FeasibleSpace& range = parameter.feasible_space();
  if (HasList(parameter)) return Printable(absl::StrJoin(range.list(), ", "));
  return absl::StrCat(FormatNumber(range.min()), " .. ", FormatNumber(range.max()));
}

bool SameRange(const v1::FeasibleSpace& a, const v1::FeasibleSpace& b) {
  return a.min() == b.min() && a.max() == b.max() &&
         std::equal(a.list().begin(), a.list().end(), b.list().begin(), b.list().end());
}

}  // namespace

StatusOr<v1::ExperimentSpec> WithChanges(const v1::Experiment& experiment,
                                         const ParameterChanges& changes) {
  v1::Experiment changed = experiment;
  v1::ExperimentSpec& spec = *changed.mutable_spec();
  if (changes.empty()) return spec;
  if (spec.shirabe().has_algorithm()) {
    return absl::InvalidArgumentError(
        "parameters: a remote algorithm keeps the space that it was told first: start a new "
        "experiment, with this one as spec.shirabe.warmStart");
  }
  std::set<std::string> seen;
  std::vector<std::string> names;
  for (const v1::ParameterSpec& parameter : spec.parameters()) names.push_back(parameter.name());
  for (const v1::ParameterChange& change : changes) {
    if (!seen.insert(change.name()).second) return Refused(change.name(), "is given twice");
    v1::ParameterSpec* found = nullptr;
    for (v1::ParameterSpec& parameter : *spec.mutable_parameters()) {
      if (parameter.name() == change.name()) found = &parameter;
    }
    if (found == nullptr)
      return Refused(change.name(), "does not exist" + DidYouMean(change.name(), names));
    RETURN_IF_ERROR(CheckWhatChanges(spec, *found, change.feasible_space()));
    RETURN_IF_ERROR(CheckSteps(*found, change.feasible_space()));
    Merge(change.feasible_space(), *found->mutable_feasible_space());
  }
  SetDefaults(changed);
  v1::Experiment without_starts = changed;
  without_starts.mutable_spec()->mutable_shirabe()->clear_start();
  for (const Finding& finding : Validate(without_starts)) {
    if (finding.warning) continue;
    return absl::InvalidArgumentError(finding.path + ": " + finding.message);
  }
  RETURN_IF_ERROR(CheckStartsToCome(spec, experiment.status().trials()));
  return spec;
}

ParameterChanges ChangesBetween(const v1::ExperimentSpec& stored,
                                const v1::ExperimentSpec& wanted) {
  ParameterChanges changes;
  const int count = std::min(stored.parameters_size(), wanted.parameters_size());
  for (int i = 0; i < count; ++i) {
    const v1::FeasibleSpace& range = wanted.parameters(i).feasible_space();
    if (SameRange(stored.parameters(i).feasible_space(), range)) continue;
    v1::ParameterChange& change = *changes.Add();
    change.set_name(wanted.parameters(i).name());
    if (range.has_min()) change.mutable_feasible_space()->set_min(range.min());
    if (range.has_max()) change.mutable_feasible_space()->set_max(range.max());
    *change.mutable_feasible_space()->mutable_list() = range.list();
  }
  return changes;
}

std::string DescribeChanges(const v1::ExperimentSpec& before, const v1::ExperimentSpec& after) {
  std::vector<std::string> words;
  const int count = std::min(before.parameters_size(), after.parameters_size());
  for (int i = 0; i < count; ++i) {
    const v1::ParameterSpec &from = before.parameters(i), &to = after.parameters(i);
    if (SameRange(from.feasible_space(), to.feasible_space())) continue;
    words.push_back(absl::StrCat(to.name(), " ", RangeWords(from), " -> ", RangeWords(to)));
  }
  return absl::StrJoin(words, ", ");
}

StatusOr<v1::ParameterChange> ParseChangeFlag(const std::string& text) {
  const std::string option = "--param \"" + text + "\": ";
  const char* forms = "write NAME=RANGE, as in lr=1e-5..0.5, lr=..0.5 or optimizer=sgd,adam";
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(option + forms);
  }
  v1::ParameterChange change;
  change.set_name(text.substr(0, equals));
  v1::FeasibleSpace& range = *change.mutable_feasible_space();
  const std::string values = text.substr(equals + 1);
  const size_t dots = values.find("..");
  if (dots == std::string::npos) {
    for (const auto& value : absl::StrSplit(values, ',')) range.add_list(std::string(value));
    return change;
  }
  const std::string from = values.substr(0, dots), to = values.substr(dots + 2);
  const auto min = ParseNumber(from), max = ParseNumber(to);
  if ((!from.empty() && !min) || (!to.empty() && !max) || (!min && !max)) {
    return absl::InvalidArgumentError(option + forms);
  }
  if (min) range.set_min(*min);
  if (max) range.set_max(*max);
  return change;
}

}  // namespace shirabe::experiment
