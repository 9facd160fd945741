#include "view/comparison.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names.h"
#include "client/records/enum_words.h"
#include "experiment/spec/message_tree.h"
#include "experiment/spec/trial_result.h"
#include "experiment/submission.h"
#include "trial/trial_template.h"
#include "view/record_rows.h"
#include "view/result_front.h"
#include "view/spending.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

std::string NameOf(const ComparedTrial& compared) {
  return TrialName({ExperimentKeyOf(compared.trial), compared.trial.number()});
}
std::string NameOf(const ComparedExperiment& compared) {
  return compared.experiment.metadata().name();
}

// ---- properties: a name, and a text of each --------------------------------------------------

struct Property {
  std::string name;
  std::vector<std::string> texts;  // "" where it has none

  bool differs() const {
    return std::any_of(texts.begin(), texts.end(),
                       [&](const std::string& text) { return text != texts[0]; });
  }
};

template <class Compared, class Text>
Property Of(const std::string& name, const std::vector<Compared>& all, const Text& text) {
  Property property{name, {}};
  for (const Compared& one : all) property.texts.push_back(text(one));
  return property;
}

// Names in the order in which they are first seen.
template <class Compared, class Names>
std::vector<std::string> NamesIn(const std::vector<Compared>& all, const Names& names_of) {
  std::vector<std::string> names;
  for (const Compared& one : all) {
    for (const std::string& name : names_of(one)) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

std::string ValueOf(const v1::Trial& trial, const std::string& name) {
  for (const v1::Assignment& assignment : trial.assignments()) {
    if (assignment.name() == name) return trial::FormatAssignment(assignment);
  }
  return "";
}

std::vector<Property> Parameters(const std::vector<ComparedTrial>& all) {
  const auto names = NamesIn(all, [](const ComparedTrial& one) {
    std::vector<std::string> own;
    for (const v1::Assignment& assignment : one.trial.assignments()) {
      own.push_back(assignment.name());
    }
    return own;
  });
  std::vector<Property> properties;
  for (const std::string& name : names) {
    properties.push_back(
        Of(name, all, [&](const ComparedTrial& one) { return ValueOf(one.trial, name); }));
  }
  return properties;
}

// double {"min":"0","max":"1"}: the space of a parameter as one text.
std::string SpaceOf(const v1::Experiment& experiment, const std::string& name) {
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    if (parameter.name() != name) continue;
    Json space = experiment::ToTree(parameter);
    if (!space.contains("feasibleSpace"))
      return client::ParameterTypeWord(parameter.parameter_type());
    return client::ParameterTypeWord(parameter.parameter_type()) + " " +
           PrintJsonLine(space["feasibleSpace"]);
  }
  return "";
}

std::vector<Property> Parameters(const std::vector<ComparedExperiment>& all) {
  const auto names = NamesIn(all, [](const ComparedExperiment& one) {
    std::vector<std::string> own;
    for (const auto& parameter : one.experiment.spec().parameters()) {
      own.push_back(parameter.name());
    }
    return own;
  });
  std::vector<Property> properties;
  for (const std::string& name : names) {
    properties.push_back(Of(
        name, all, [&](const ComparedExperiment& one) { return SpaceOf(one.experiment, name); }));
  }
  return properties;
}

std::string NumberText(const std::optional<double>& value) {
  return value ? client::ShortNumber(*value) : "";
}

std::optional<double> ObjectiveOf(const ComparedTrial& one) {
  const auto shown = client::ShownObjective(one.experiment, one.trial);
  return shown ? std::optional(shown->value) : std::nullopt;
}

std::optional<double> BestOf(const ComparedExperiment& one) {
  const v1::OptimalTrial& best = one.experiment.status().current_optimal_trial();
  return best.has_objective() ? std::optional(best.objective()) : std::nullopt;
}

std::vector<Property> Results(const std::vector<ComparedTrial>& all) {
  std::vector<Property> rows = {Of(
      "state", all, [](const ComparedTrial& one) { return client::PhaseWord(one.trial.phase()); })};
  const auto metrics =
      NamesIn(all, [](const ComparedTrial& one) { return client::MetricNames(one.experiment); });
  for (const std::string& metric : metrics) {
    rows.push_back(Of(metric, all, [&](const ComparedTrial& one) {
      const bool is_objective = client::MetricNames(one.experiment)[0] == metric;
      const auto shown = is_objective ? client::ShownObjective(one.experiment, one.trial)
                                      : client::ShownMetric(one.experiment, one.trial, metric);
      return shown ? client::ShortNumber(shown->value) : "";
    }));
  }
  return rows;
}

std::vector<Property> Costs(const std::vector<ComparedTrial>& all) {
  return {
      Of("last step", all,
         [](const ComparedTrial& one) { return std::to_string(one.trial.last_step()); }),
      Of("attempts", all,
         [](const ComparedTrial& one) { return std::to_string(one.trial.attempts()); }),
      Of("preemptions", all,
         [](const ComparedTrial& one) { return std::to_string(one.trial.preemptions()); }),
      Of("ran", all, [](const ComparedTrial& one) { return SecondsText(one.trial.seconds()); }),
      Of("cost", all,
         [](const ComparedTrial& one) { return MoneyText(one.experiment, one.trial.cost()); }),
  };
}

std::string ObjectivesText(const ComparedExperiment& one) {
  const v1::ObjectiveSpec& objective = one.experiment.spec().objective();
  std::string text =
      client::ObjectiveWord(objective.type()) + " " + objective.objective_metric_name();
  for (const auto& further : one.experiment.spec().shirabe().additional_objectives()) {
    text += ", " + client::ObjectiveWord(further.type()) + " " + further.metric_name();
  }
  return text;
}

std::string BestTrialName(const ComparedExperiment& one) {
  return one.experiment.status().current_optimal_trial().best_trial_name();
}

std::vector<Property> Results(const std::vector<ComparedExperiment>& all) {
  std::vector<Property> rows = {
      Of("state", all,
         [](const ComparedExperiment& one) { return client::StateWord(one.experiment); }),
      Of("objective", all, ObjectivesText),
      Of("algorithm", all,
         [](const ComparedExperiment& one) {
           return one.experiment.spec().algorithm().algorithm_name();
         }),
      Of("trials", all, [](const ComparedExperiment& one) { return TrialsCell(one.experiment); }),
      Of("best", all, [](const ComparedExperiment& one) { return NumberText(BestOf(one)); }),
      Of("best trial", all, BestTrialName),
  };
  if (absl::c_any_of(all, [](const auto& one) { return HasFront(one.experiment); })) {
    rows.push_back(
        Of("front", all, [](const ComparedExperiment& one) { return FrontLine(one.experiment); }));
  }
  for (const int64_t count : EqualCounts(all)) {
    rows.push_back(Of(absl::StrCat("best of ", count), all, [&](const ComparedExperiment& one) {
      return NumberText(BestAfter(one, count));
    }));
  }
  return rows;
}

std::vector<Property> Costs(const std::vector<ComparedExperiment>& all) {
  const auto status = [](const ComparedExperiment& one) -> const v1::ShirabeStatus& {
    return one.experiment.status().shirabe();
  };
  return {
      Of("failed", all,
         [](const ComparedExperiment& one) {
           return std::to_string(one.experiment.status().trials_failed());
         }),
      Of("preemptions", all,
         [&](const ComparedExperiment& one) { return std::to_string(status(one).preemptions()); }),
      Of("ran", all,
         [&](const ComparedExperiment& one) { return SecondsText(status(one).seconds()); }),
      Of("cost", all,
         [&](const ComparedExperiment& one) {
           return MoneyText(one.experiment, status(one).cost());
         }),
  };
}

template <class Compared>
std::string TableOf(const std::vector<Compared>& all, bool with_all) {
  Cells header = {"FIELD"};
  for (const Compared& one : all) header.push_back(NameOf(one));
  Table table(std::move(header));
  const auto add = [&](const std::vector<Property>& rows, bool only_differing) {
    for (const Property& row : rows) {
      const bool empty = std::all_of(row.texts.begin(), row.texts.end(),
                                     [](const std::string& text) { return text.empty(); });
      if (empty || (only_differing && !row.differs())) continue;
      Cells cells = {row.name};
      cells.insert(cells.end(), row.texts.begin(), row.texts.end());
      table.Add(std::move(cells));
    }
  };
  add(Results(all), false);
  add(Parameters(all), !with_all);
  add(Costs(all), false);
  return table.Render();
}

// ---- JSON ------------------------------------------------------------------------------------

template <class Compared>
Json TreeOf(const std::string& of, const std::vector<Compared>& all) {
  Json differs = Json::array();
  for (const Property& parameter : Parameters(all)) {
    if (parameter.differs()) differs.push_back(parameter.name);
  }
  return {{"apiVersion", "shirabe/v1"},
          {"kind", "Comparison"},
          {"of", of},
          {"differs", std::move(differs)},
          {"items", Json::array()}};
}

Json NumberOrNull(const std::optional<double>& value) {
  return value ? NumberJson(*value) : Json();
}

Json ItemOf(const ComparedTrial& one) {
  Json parameters = Json::object();
  for (const v1::Assignment& assignment : one.trial.assignments()) {
    parameters[assignment.name()] = TypedValue(assignment);
  }
  return {{"name", NameOf(one)},
          {"state", client::PhaseWord(one.trial.phase())},
          {"objective", client::MetricNames(one.experiment)[0]},
          {"value", NumberOrNull(ObjectiveOf(one))},
          {"lastStep", one.trial.last_step()},
          {"parameters", std::move(parameters)},
          {"attempts", one.trial.attempts()},
          {"preemptions", one.trial.preemptions()},
          {"seconds", NumberJson(one.trial.seconds())},
          {"cost", NumberJson(one.trial.cost())}};
}

Json ItemOf(const ComparedExperiment& one) {
  const v1::ShirabeStatus& status = one.experiment.status().shirabe();
  Json parameters = Json::object();
  for (const v1::ParameterSpec& parameter : one.experiment.spec().parameters()) {
    parameters[parameter.name()] = experiment::ToTree(parameter);
    parameters[parameter.name()].erase("name");
  }
  return {{"name", NameOf(one)},
          {"state", client::StateWord(one.experiment)},
          {"objective", client::MetricNames(one.experiment)[0]},
          {"type", client::ObjectiveWord(one.experiment.spec().objective().type())},
          {"algorithm", one.experiment.spec().algorithm().algorithm_name()},
          {"trials", FinishedTrials(one.experiment)},
          {"failed", one.experiment.status().trials_failed()},
          {"best", NumberOrNull(BestOf(one))},
          {"bestTrial", BestTrialName(one)},
          {"parameters", std::move(parameters)},
          {"preemptions", status.preemptions()},
          {"seconds", NumberJson(status.seconds())},
          {"cost", NumberJson(status.cost())}};
}

int64_t EndedTrials(const ComparedExperiment& one) {
  return std::count_if(one.trials.begin(), one.trials.end(),
                       [](const v1::Trial& trial) { return client::IsTerminal(trial.phase()); });
}

}  // namespace

std::optional<double> BestAfter(const ComparedExperiment& compared, int64_t count) {
  const bool maximize = compared.experiment.spec().objective().type() == v1::MAXIMIZE;
  std::optional<double> best;
  for (const v1::Trial& trial : compared.trials) {
    if (!client::IsTerminal(trial.phase())) continue;
    if (count-- <= 0) break;
    const auto result = experiment::ResultOf(compared.experiment.spec(), trial);
    if (!result || !result->feasible()) continue;
    const double value = trial.objective();
    if (!best || (maximize ? value > *best : value < *best)) best = value;
  }
  return best;
}

std::vector<int64_t> EqualCounts(const std::vector<ComparedExperiment>& compared) {
  int64_t most = compared.empty() ? 0 : EndedTrials(compared[0]);
  for (const ComparedExperiment& one : compared) most = std::min(most, EndedTrials(one));
  std::vector<int64_t> counts;
  for (int64_t decade = 1; decade < most; decade *= 10) {
    for (const int64_t part : {1, 2, 5}) {
      if (decade * part < most) counts.push_back(decade * part);
    }
  }
  if (most > 0) counts.push_back(most);
  return counts;
}

std::string CompareTable(const std::vector<ComparedTrial>& compared, bool all) {
  return TableOf(compared, all);
}

std::string CompareTable(const std::vector<ComparedExperiment>& compared, bool all) {
  return TableOf(compared, all);
}

Json CompareJson(const std::vector<ComparedTrial>& compared) {
  Json tree = TreeOf("trials", compared);
  for (const ComparedTrial& one : compared) tree["items"].push_back(ItemOf(one));
  return tree;
}

Json CompareJson(const std::vector<ComparedExperiment>& compared) {
  Json tree = TreeOf("experiments", compared);
  for (const ComparedExperiment& one : compared) tree["items"].push_back(ItemOf(one));
  tree["bestAfter"] = Json::array();
  for (const int64_t count : EqualCounts(compared)) {
    Json values = Json::array();
    for (const auto& one : compared) values.push_back(NumberOrNull(BestAfter(one, count)));
    tree["bestAfter"].push_back({{"trials", count}, {"values", std::move(values)}});
  }
  return tree;
}

}  // namespace shirabe::view
