#include "import/optuna_space.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/json_text.h"
#include "base/text/number.h"

namespace shirabe::import {
namespace {

using Json = nlohmann::ordered_json;

// The values of a parameter in trials that have a certain other one, and in those that have not.
struct Told {
  std::set<std::string> with, without;
};

// One choice as the text that a program would be given.
std::string ChoiceText(const Json& choice) {
  return choice.is_string() ? choice.get<std::string>() : JsonText(choice);
}

// What tells `with` from `without`: a list of values of a categorical parameter, a range of an
// integer; null if nothing does.
Json MatcherOf(const std::string& kind, const Told& told) {
  if (told.with.empty() || told.without.empty()) return nullptr;
  if (kind == "categorical") {
    for (const std::string& value : told.without) {
      if (told.with.contains(value)) return nullptr;
    }
    return told.with;
  }
  if (kind != "int") return nullptr;
  const auto ends = [](const std::set<std::string>& texts) {
    std::vector<double> numbers;
    for (const std::string& text : texts) numbers.push_back(ParseNumber(text).value_or(0));
    const auto [least, greatest] = std::minmax_element(numbers.begin(), numbers.end());
    return std::pair(*least, *greatest);
  };
  const auto [with_least, with_greatest] = ends(told.with);
  const auto [without_least, without_greatest] = ends(told.without);
  if (with_least > without_greatest) return {{"min", with_least}};
  if (with_greatest < without_least) return {{"max", with_greatest}};
  return nullptr;
}

using Parameters = std::map<std::string, ParameterKind>;

// The parameter among `known` that tells which trials have this one, of those that were suggested
// before it the last; null if none does.
Json ConditionOf(const std::string& name, const Parameters& parameters,
                 const std::vector<TrialValues>& trials, const std::set<std::string>& known) {
  Json condition;
  size_t order = 0;
  for (const std::string& parent : known) {
    const ParameterKind& kind = parameters.at(parent);
    if (kind.order > parameters.at(name).order || kind.order < order) continue;
    Told told;
    bool alone = false;  // a trial has the parameter without its parent
    for (const TrialValues& values : trials) {
      const auto value = values.find(parent);
      const bool has = values.contains(name);
      alone = alone || (has && value == values.end());
      if (value != values.end()) (has ? told.with : told.without).insert(value->second);
    }
    const Json matcher = alone ? Json() : MatcherOf(kind.kind, told);
    if (matcher.is_null()) continue;
    order = kind.order;
    condition = {{"parameter", name}, {"when", {{parent, matcher}}}};
  }
  return condition;
}

}  // namespace

ToldParameters FindConditions(const std::map<std::string, ParameterKind>& parameters,
                              const std::vector<TrialValues>& trials) {
  ToldParameters told;
  for (size_t before = parameters.size() + 1; before != told.names.size();) {
    before = told.names.size();
    for (const auto& [name, kind] : parameters) {
      if (told.names.contains(name)) continue;
      const auto has = [&name = name](const TrialValues& values) { return values.contains(name); };
      if (std::all_of(trials.begin(), trials.end(), has)) {
        told.names.insert(name);
        continue;
      }
      Json condition = ConditionOf(name, parameters, trials, told.names);
      if (condition.is_null()) continue;
      told.names.insert(name);
      told.conditions.push_back(std::move(condition));
    }
  }
  return told;
}

StatusOr<std::string> OptunaSpace::Add(const std::string& name, const Json& distribution,
                                       double value) {
  const auto [dimension, added] = dimensions_.try_emplace(name);
  if (added) dimension->second.order = dimensions_.size();
  return Join(distribution, value, dimension->second);
}

// The value as text, and its distribution joined to what is known of the parameter.
StatusOr<std::string> OptunaSpace::Join(const Json& distribution, double value,
                                        Dimension& dimension) {
  const std::string kind = distribution.value("name", "");
  const Json attributes = distribution.value("attributes", Json::object());
  ++dimension.trials;
  if (kind == "CategoricalDistribution") {
    dimension.kind = "categorical";
    dimension.choices.clear();
    for (const Json& choice : attributes.value("choices", Json::array())) {
      dimension.choices.push_back(ChoiceText(choice));
    }
    const auto index = static_cast<size_t>(value);
    if (value < 0 || index >= dimension.choices.size()) {
      return absl::DataLossError(absl::StrCat("choice ", value, " is not in its list"));
    }
    return dimension.choices[index];
  }
  const double low = attributes.value("low", 0.0), high = attributes.value("high", 0.0);
  const bool first = dimension.trials == 1;
  dimension.kind = kind.rfind("Int", 0) == 0 ? "int" : "double";
  dimension.low = first ? low : std::min(low, dimension.low);
  dimension.high = first ? high : std::max(high, dimension.high);
  dimension.log = attributes.value("log", false) || kind == "LogUniformDistribution" ||
                  kind == "IntLogUniformDistribution";
  const Json step =
      attributes.contains("step") ? attributes["step"] : attributes.value("q", Json());
  const bool counts = step.is_number() && !(dimension.kind == "int" && step == 1);
  dimension.step = counts ? std::optional(step.get<double>()) : std::nullopt;
  return FormatNumber(value);
}

void OptunaSpace::Describe(const std::vector<Values>& trials, client::Imported& imported) const {
  const ToldParameters told = FindConditions({dimensions_.begin(), dimensions_.end()}, trials);
  if (!told.conditions.empty()) imported.further["space"]["conditions"] = told.conditions;
  imported.parameters = Json::array();
  for (const auto& [name, dimension] : dimensions_) {
    if (!told.names.contains(name)) {
      imported.notes.push_back(absl::StrCat("parameter ", name, " is left out: ", dimension.trials,
                                            " trials have it, and "
                                            "no other parameter tells which"));
      continue;
    }
    Json space = Json::object();
    if (dimension.kind == "categorical") {
      space["list"] = dimension.choices;
    } else {
      space = {{"min", FormatNumber(dimension.low)}, {"max", FormatNumber(dimension.high)}};
      if (dimension.step) space["step"] = FormatNumber(*dimension.step);
      if (dimension.log) space["distribution"] = "logUniform";
    }
    imported.parameters.push_back(
        {{"name", name}, {"parameterType", dimension.kind}, {"feasibleSpace", std::move(space)}});
  }
}

void DropBetterPruned(client::Imported& imported) {
  const std::string metric = imported.objective.value("objectiveMetricName", "");
  const bool maximize = imported.objective.value("type", "") == "maximize";
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const auto last = [&](const client::ImportedTrial& trial) {
    double loss = kNone;
    for (const client::ImportedObservation& point : trial.points) {
      if (point.metric == metric) loss = maximize ? -point.value : point.value;
    }
    return loss;
  };
  double best = kNone;
  for (const client::ImportedTrial& trial : imported.trials) {
    if (trial.phase == v1::TRIAL_SUCCEEDED) best = std::min(best, last(trial));
  }
  if (best == kNone) return;
  const size_t dropped = std::erase_if(imported.trials, [&](const client::ImportedTrial& trial) {
    return trial.phase == v1::TRIAL_EARLY_STOPPED && last(trial) < best;
  });
  if (dropped == 0) return;
  imported.notes.push_back(absl::StrCat(dropped,
                                        " pruned trials are left out: what they reported last is "
                                        "better than the best result of the study"));
}

}  // namespace shirabe::import
