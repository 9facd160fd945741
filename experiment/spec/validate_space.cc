// Rules of spec.parameters: what each type needs, forbids and means.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_split.h"
#include "base/names.h"
#include "base/text/number.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/validate_rules.h"

namespace shirabe::experiment {
namespace {

// One parameter's rules; every message is about a field of its feasibleSpace.
class SpaceCheck {
 public:
  SpaceCheck(const v1::ParameterSpec& parameter, std::string path, Findings& findings)
      : parameter_(parameter),
        space_(parameter.feasible_space()),
        path_(ChildPath(path, "feasibleSpace")),
        type_(WordOf(*v1::ParameterType_descriptor(), parameter.parameter_type())),
        findings_(findings) {}

  void Run() {
    switch (parameter_.parameter_type()) {
      case v1::DOUBLE:
      case v1::INT: return CheckRange();
      case v1::DISCRETE:
      case v1::CATEGORICAL: return CheckList();
      default: return;  // missing: the table has said so
    }
  }

 private:
  void Error(const char* field, const std::string& message) {
    findings_.Error(ChildPath(path_, field), message);
  }

  void CheckRange() {
    if (space_.list_size() > 0) {
      Error("list", "does not go with parameterType " + type_ +
                        ": give min and max, or make it discrete or categorical");
    }
    if (!space_.has_min()) Error("min", "is required for parameterType " + type_);
    if (!space_.has_max()) Error("max", "is required for parameterType " + type_);
    if (parameter_.parameter_type() == v1::INT) CheckIntegers();
    if (space_.has_min() && space_.has_max() && !IsUnreadable()) CheckBounds();
    CheckLogarithm();
  }

  bool IsUnreadable() const {
    return findings_.IsUnreadable(ChildPath(path_, "min")) ||
           findings_.IsUnreadable(ChildPath(path_, "max"));
  }

  void CheckIntegers() {
    CheckInteger("min", space_.min());
    CheckInteger("max", space_.max());
    CheckInteger("step", space_.step());
  }

  void CheckInteger(const char* field, double value) {
    if (!std::isfinite(value)) return;
    if (value != std::floor(value)) {
      Error(field, FormatNumber(value) +
                       " is not an integer, but parameterType is int: round it, or " +
                       "make it a double");
    } else if (std::abs(value) > kMaxExactInteger) {
      Error(field, FormatNumber(value) + " is beyond 2^53, where integers are no longer exact");
    }
  }

  void CheckBounds() {
    const double min = space_.min(), max = space_.max();
    if (!std::isfinite(min) || !std::isfinite(max)) return;
    if (min > max) {
      return Error("min",
                   FormatNumber(min) + " is greater than max " + FormatNumber(max) + ": swap them");
    }
    if (!std::isfinite(max - min)) {
      return Error("max", "the range from " + FormatNumber(min) + " to " + FormatNumber(max) +
                              " is too wide for a double: narrow it");
    }
    if (!space_.has_step() || !std::isfinite(space_.step())) return;
    if (space_.step() <= 0) {
      Error("step", "must be greater than 0, not " + FormatNumber(space_.step()));
    } else if (max > min && space_.step() > (max - min) * (1 + 1e-12)) {
      Error("step", FormatNumber(space_.step()) + " is more than max - min = " +
                        FormatNumber(max - min) + ": only min could be tried");
    }
  }

  void CheckLogarithm() {
    const auto distribution = space_.distribution();
    if (distribution != v1::LOG_UNIFORM && distribution != v1::LOG_NORMAL) return;
    if (!space_.has_min() || !(space_.min() <= 0)) return;
    Error("min", "must be greater than 0 for " +
                     WordOf(*v1::Distribution_descriptor(), distribution) + ", not " +
                     FormatNumber(space_.min()));
  }

  void CheckList() {
    const std::string message = "does not go with parameterType " + type_ + ": give a list";
    if (space_.has_min()) Error("min", message);
    if (space_.has_max()) Error("max", message);
    if (space_.has_step()) Error("step", message);
    if (space_.distribution() != v1::DISTRIBUTION_UNSPECIFIED) {
      Error("distribution", "does not go with parameterType " + type_ + ": remove it");
    }
    if (space_.list_size() == 0) Error("list", "is required for parameterType " + type_);
    std::set<std::string> words;
    std::map<double, std::string> numbers;
    for (int i = 0; i < space_.list_size(); ++i) {
      CheckItem(ItemPath(ChildPath(path_, "list"), i), space_.list(i), words, numbers);
    }
  }

  void CheckItem(const std::string& path, const std::string& text, std::set<std::string>& words,
                 std::map<double, std::string>& numbers) {
    if (!words.insert(text).second) {
      return findings_.Error(path, "\"" + text + "\" is listed twice: remove one");
    }
    if (parameter_.parameter_type() != v1::DISCRETE) return;
    const auto number = ParseNumber(text);
    if (!number || !std::isfinite(*number)) {
      return findings_.Error(path, "\"" + text +
                                       "\" is not a finite number, but parameterType is " +
                                       "discrete: make it categorical");
    }
    const auto [first, fresh] = numbers.emplace(*number, text);
    if (!fresh) {
      findings_.Error(
          path, "\"" + text + "\" and \"" + first->second + "\" are the same number: remove one");
    }
  }

  const v1::ParameterSpec& parameter_;
  const v1::FeasibleSpace& space_;
  std::string path_;
  std::string type_;
  Findings& findings_;
};

void CheckNames(const v1::ExperimentSpec& spec, Findings& findings) {
  std::set<std::string> names;
  std::map<std::string, std::string> variables;
  for (int i = 0; i < spec.parameters_size(); ++i) {
    const std::string& name = spec.parameters(i).name();
    const std::string path = ItemPath("spec.parameters", i) + ".name";
    if (name.empty()) continue;
    if (!names.insert(name).second) {
      findings.Error(path, "\"" + name + "\" is the name of another parameter: rename one");
      continue;
    }
    const auto [other, fresh] = variables.emplace(ParameterVariable(name), name);
    if (!fresh) {
      findings.Warn(path, "\"" + name + "\" and \"" + other->second +
                              "\" have the same environment variable " + other->first);
    }
  }
}

// Whether every parameter has what the table requires of it.
bool AreComplete(const v1::ExperimentSpec& spec) {
  return std::all_of(spec.parameters().begin(), spec.parameters().end(), [](const auto& parameter) {
    return !parameter.name().empty() && parameter.has_feasible_space() &&
           parameter.parameter_type() != v1::PARAMETER_TYPE_UNKNOWN;
  });
}

}  // namespace

std::optional<suggestion::Space> CheckParameters(const v1::ExperimentSpec& spec,
                                                 Findings& findings) {
  if (spec.parameters_size() == 0) {
    if (!spec.has_nas_config()) {
      findings.Error("spec.parameters", "is required: give at least one parameter to tune");
    }
    return std::nullopt;
  }
  if (spec.has_nas_config()) {
    findings.Error("spec.nasConfig", "does not go with parameters: give one of the two");
  }
  const int errors = findings.errors();
  CheckNames(spec, findings);
  for (int i = 0; i < spec.parameters_size(); ++i) {
    SpaceCheck(spec.parameters(i), ItemPath("spec.parameters", i), findings).Run();
  }
  if (findings.errors() > errors || findings.IsUnreadable("spec.parameters") ||
      !AreComplete(spec)) {
    return std::nullopt;
  }
  const auto space = suggestion::Space::Create(spec.parameters());
  if (!space.ok()) {
    findings.Error("spec.parameters", Message(space.status()));
    return std::nullopt;
  }
  auto ruled = space->WithRules(spec.shirabe().space());
  if (ruled.ok()) return *std::move(ruled);
  const std::string wrong = Message(ruled.status());
  for (const absl::string_view line : absl::StrSplit(wrong, '\n')) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    findings.Error(parts.first, parts.second);
  }
  return std::nullopt;
}

}  // namespace shirabe::experiment
