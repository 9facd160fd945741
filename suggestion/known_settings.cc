#include "suggestion/known_settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"
#include "suggestion/processor_level.h"

namespace shirabe::suggestion {
namespace {

// The seed, which the caller of Propose turns into `root`; every variant accepts it.
SettingInfo RandomState() {
  return {.name = "random_state",
          .type = SettingInfo::Type::kInt,
          .max = std::numeric_limits<double>::infinity(),
          .help = "seed: the same number gives the same suggestions"};
}

std::string Guess(const std::string& word, const std::vector<std::string>& known) {
  const auto near = Nearest(word, known);
  return near ? "did you mean \"" + *near + "\"? " : "";
}

std::vector<std::string> NamesOf(const std::vector<SettingInfo>& known) {
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const SettingInfo& info : known) names.push_back(info.name);
  return names;
}

const SettingInfo* FindInfo(const std::vector<SettingInfo>& known, const std::string& name) {
  for (const SettingInfo& info : known) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::vector<SettingInfo> WithRandomState(std::vector<SettingInfo> known) {
  if (FindInfo(known, "random_state") == nullptr) known.push_back(RandomState());
  return known;
}

Status CheckBounds(const SettingInfo& info, double number) {
  if (info.min == info.max || (number >= info.min && number <= info.max)) return absl::OkStatus();
  if (std::isinf(info.max))
    return absl::InvalidArgumentError("it must be at least " + FormatNumber(info.min));
  return absl::InvalidArgumentError("it must be within " + FormatNumber(info.min) + " … " +
                                    FormatNumber(info.max));
}

Status CheckInt(const SettingInfo& info, const std::string& value) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size()) {
    return absl::InvalidArgumentError("it must be a whole number, such as " +
                                      (info.default_value.empty() ? "7" : info.default_value));
  }
  return CheckBounds(info, static_cast<double>(number));
}

Status CheckDouble(const SettingInfo& info, const std::string& value) {
  const auto number = ParseNumber(value);
  if (number && std::isfinite(*number)) return CheckBounds(info, *number);
  return absl::InvalidArgumentError("it must be a number, such as " +
                                    (info.default_value.empty() ? "0.5" : info.default_value));
}

// Katib's Python programs write True and False.
Status CheckBool(const std::string& value) {
  const std::string lower = absl::AsciiStrToLower(value);
  if (lower == "true" || lower == "false") return absl::OkStatus();
  return absl::InvalidArgumentError("it must be true or false");
}

Status CheckWord(const SettingInfo& info, const std::string& value) {
  if (info.words.empty()) return absl::OkStatus();
  if (std::find(info.words.begin(), info.words.end(), value) != info.words.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(Guess(value, info.words) + "it must be one of " +
                                    absl::StrJoin(info.words, ", "));
}

Status CheckValue(const SettingInfo& info, const std::string& value) {
  switch (info.type) {
    case SettingInfo::Type::kInt: return CheckInt(info, value);
    case SettingInfo::Type::kDouble: return CheckDouble(info, value);
    case SettingInfo::Type::kBool: return CheckBool(value);
    case SettingInfo::Type::kWord: return CheckWord(info, value);
  }
  return absl::OkStatus();
}

Status Unknown(const std::string& name, const std::vector<SettingInfo>& known) {
  const std::vector<std::string> names = NamesOf(known);
  return absl::InvalidArgumentError("setting \"" + name + "\" is not known; " + Guess(name, names) +
                                    "known: " + absl::StrJoin(names, ", "));
}

Status Twice(const std::string& name) {
  return absl::InvalidArgumentError("setting \"" + name + "\" is given twice; remove one");
}

Settings WithDefaults(const std::vector<SettingInfo>& known, Settings settings) {
  for (const SettingInfo& info : known) {
    if (info.default_value.empty() || FindSetting(settings, info.name) != nullptr) continue;
    settings.emplace_back(info.name, info.default_value);
  }
  return settings;
}

template <class Info>
Status NotFound(const std::string& what, const std::string& name) {
  std::vector<std::string> names = Registry<Info>::Get().Names();
  const std::string list = absl::StrJoin(names, ", ");
  for (const std::string& alias : Registry<Info>::Get().Aliases()) names.push_back(alias);
  return absl::NotFoundError(what + " \"" + name + "\" is not known; " + Guess(name, names) +
                             "known: " + list);
}

// An algorithm, and a problem as it takes it: with all settings, and the space that it searches.
struct Chosen {
  const AlgorithmInfo* info;
  Problem problem;
};

// Those that take such a problem, too.
template <class Info>
std::string NamesThat(bool Info::*can) {
  std::vector<std::string> names;
  for (const std::string& name : Registry<Info>::Get().Names()) {
    if (Registry<Info>::Get().Find(name)->*can) names.push_back(name);
  }
  return absl::StrJoin(names, ", ");
}

Status CheckAbilities(const AlgorithmInfo& info, const Problem& problem) {
  if (problem.objectives > 1 && !info.several_objectives) {
    return absl::InvalidArgumentError("algorithm " + info.name +
                                      " searches for the best of one objective; for several use " +
                                      NamesThat(&AlgorithmInfo::several_objectives));
  }
  if (problem.constraints > 0 && !info.constraints) {
    return absl::InvalidArgumentError("algorithm " + info.name +
                                      " knows no constraints on results; use " +
                                      NamesThat(&AlgorithmInfo::constraints));
  }
  if (problem.space.has_rules() && !info.space_rules) {
    return absl::InvalidArgumentError("algorithm " + info.name +
                                      " knows no conditions, forbidden combinations or sums of "
                                      "parameters (spec.shirabe.space); use " +
                                      NamesThat(&AlgorithmInfo::space_rules));
  }
  if (problem.space.priors() != nullptr && !info.space_priors) {
    return absl::InvalidArgumentError("algorithm " + info.name +
                                      " knows no priors (spec.shirabe.space.priors); use " +
                                      NamesThat(&AlgorithmInfo::space_priors));
  }
  return absl::OkStatus();
}

StatusOr<Chosen> Choose(const std::string& name, const Problem& problem) {
  const AlgorithmInfo* info = Registry<AlgorithmInfo>::Get().Find(name);
  if (info == nullptr) return NotFound<AlgorithmInfo>("algorithm", name);
  RETURN_IF_ERROR(
      Prefix("algorithm " + info->name, ValidateSettings(info->settings, problem.settings)));
  RETURN_IF_ERROR(CheckAbilities(*info, problem));
  Chosen chosen{info, problem};
  chosen.problem.settings = WithDefaults(info->settings, problem.settings);
  if (info->reshape != nullptr) {
    ASSIGN_OR_RETURN(chosen.problem.space, info->reshape(chosen.problem));
  }
  return chosen;
}

}  // namespace

std::vector<SettingInfo> KnownSettings(const AlgorithmInfo& info) {
  return WithRandomState(info.settings);
}

std::vector<SettingInfo> KnownSettings(const StopperInfo& info) { return info.settings; }

Status ValidateSettings(const std::vector<SettingInfo>& known, const Settings& settings) {
  return ValidateStopperSettings(WithRandomState(known), settings);
}

// A rule draws nothing, so it has no seed: exactly the table.
Status ValidateStopperSettings(const std::vector<SettingInfo>& known, const Settings& settings) {
  std::set<std::string> names;
  for (const auto& [name, value] : settings) {
    const SettingInfo* info = FindInfo(known, name);
    if (info == nullptr) return Unknown(name, known);
    if (!names.insert(name).second) return Twice(name);
    RETURN_IF_ERROR(Prefix(absl::StrCat("setting \"", name, "\" is \"", value, "\""),
                           CheckValue(*info, value)));
  }
  return absl::OkStatus();
}

StatusOr<Space> SearchSpace(const std::string& name, const Problem& problem) {
  ASSIGN_OR_RETURN(const Chosen chosen, Choose(name, problem));
  return chosen.problem.space;
}

StatusOr<std::unique_ptr<Algorithm>> CreateAlgorithm(const std::string& name,
                                                     const Problem& problem) {
  ASSIGN_OR_RETURN(const Chosen chosen, Choose(name, problem));
  return ForThisProcessor(*chosen.info).create(chosen.problem);
}

StatusOr<std::unique_ptr<Stopper>> CreateStopper(const std::string& name,
                                                 const StopProblem& problem) {
  const StopperInfo* info = Registry<StopperInfo>::Get().Find(name);
  if (info == nullptr) return NotFound<StopperInfo>("early-stopping rule", name);
  RETURN_IF_ERROR(Prefix("early-stopping rule " + info->name,
                         ValidateStopperSettings(info->settings, problem.settings)));
  if (!problem.further_maximize.empty() && !info->several_objectives) {
    return absl::InvalidArgumentError("early-stopping rule " + info->name +
                                      " compares trials by one objective; with several use " +
                                      NamesThat(&StopperInfo::several_objectives));
  }
  StopProblem complete = problem;
  complete.settings = WithDefaults(info->settings, problem.settings);
  return info->create(complete);
}

const std::string* FindSetting(const Settings& settings, const std::string& name) {
  for (const auto& [key, value] : settings) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::optional<double> NumberSetting(const Settings& settings, const std::string& name) {
  const std::string* text = FindSetting(settings, name);
  return text == nullptr ? std::nullopt : ParseNumber(*text);
}

int64_t IntSetting(const Settings& settings, const std::string& name) {
  const auto number = NumberSetting(settings, name);
  CHECK(number.has_value());
  // A bound that no trial reaches stands for more than an int64 can count.
  return static_cast<int64_t>(std::min(*number, 0x1p62));
}

SettingInfo MinTrialsRequired(const std::string& trials) {
  return {.name = "min_trials_required",
          .type = SettingInfo::Type::kInt,
          .default_value = trials,
          .min = 1,
          .max = std::numeric_limits<double>::infinity(),
          .help = "nothing is stopped before this many other trials have got as far"};
}

SettingInfo StartStep(const std::string& reports) {
  return {.name = "start_step",
          .type = SettingInfo::Type::kInt,
          .default_value = reports,
          .min = 1,
          .max = std::numeric_limits<double>::infinity(),
          .help = "reports that a trial makes before it can be stopped"};
}

}  // namespace shirabe::suggestion
