#include "view/best_trial.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names.h"
#include "client/records/enum_words.h"
#include "experiment/spec/trial_result.h"
#include "trial/trial_template.h"
#include "view/record_rows.h"
#include "view/result_front.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

using Assignments = google::protobuf::RepeatedPtrField<v1::Assignment>;

Json AssignmentsObject(const Assignments& assignments) {
  Json tree = Json::object();
  for (const v1::Assignment& assignment : assignments) {
    tree[assignment.name()] = TypedValue(assignment);
  }
  return tree;
}

Json ByName(const std::vector<std::string>& names,
            const google::protobuf::RepeatedField<double>& values) {
  Json tree = Json::object();
  for (int i = 0; i < values.size() && i < static_cast<int>(names.size()); ++i) {
    tree[names[i]] = NumberJson(values[i]);
  }
  return tree;
}

Json FrontJson(const v1::Experiment& experiment) {
  const v1::ResultFront& front = experiment.status().shirabe().front();
  const std::vector<std::string> names = ObjectiveNames(experiment.spec());
  Json trials = Json::array();
  for (const v1::FrontTrial& trial : front.trials()) {
    trials.push_back({{"trial", trial.trial_name()},
                      {"values", ByName(names, trial.values())},
                      {"assignments", AssignmentsObject(trial.parameter_assignments())}});
  }
  return {{"size", front.size()},
          {"hypervolume", front.has_hypervolume() ? NumberJson(front.hypervolume()) : Json()},
          {"reference", ByName(names, front.reference())},
          {"trials", std::move(trials)}};
}

bool IsSafe(char c) {
  return absl::ascii_isalnum(c) || std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
}

}  // namespace

Status CheckHasBest(const v1::Experiment& experiment) {
  if (experiment.status().current_optimal_trial().has_objective()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "experiment ", experiment.metadata().name(), " (", client::StateWord(experiment),
      ") has no best trial: none of its ", experiment.status().trials(),
      " trials has ended well with a finite \"",
      absl::StrJoin(ObjectiveNames(experiment.spec()), "\" and \""), "\"",
      experiment.spec().shirabe().constraints_size() > 0 ? " and keeps spec.shirabe.constraints"
                                                         : ""));
}

Json BestJson(const v1::Experiment& experiment) {
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  Json tree = {{"trial", best.best_trial_name()},
               {"objective", experiment.spec().objective().objective_metric_name()},
               {"value", NumberJson(best.objective())},
               {"step", best.has_step() ? Json(best.step()) : Json()},
               {"assignments", AssignmentsObject(best.parameter_assignments())}};
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (status.has_front()) tree["front"] = FrontJson(experiment);
  if (!status.has_recommended_trial()) return tree;
  const v1::RecommendedTrial& recommended = status.recommended_trial();
  tree["recommended"] = {{"trial", recommended.trial_name()},
                         {"value", NumberJson(recommended.predicted())},
                         {"deviation", NumberJson(recommended.deviation())},
                         {"reason", recommended.reason()},
                         {"assignments", AssignmentsObject(recommended.parameter_assignments())}};
  return tree;
}

std::string RecommendedLine(const v1::Experiment& experiment) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  if (!status.has_recommended_trial()) return "";
  const v1::RecommendedTrial& recommended = status.recommended_trial();
  return absl::StrCat("trial ", recommended.trial_name(), ", predicted ",
                      client::ShortNumber(recommended.predicted()), " ± ",
                      client::ShortNumber(recommended.deviation()), ": ", recommended.reason());
}

v1::Experiment WithRecommended(v1::Experiment experiment) {
  v1::ShirabeStatus& status = *experiment.mutable_status()->mutable_shirabe();
  if (!status.has_recommended_trial()) return experiment;
  const v1::RecommendedTrial& recommended = status.recommended_trial();
  v1::OptimalTrial& best = *experiment.mutable_status()->mutable_current_optimal_trial();
  best.Clear();
  best.set_best_trial_name(recommended.trial_name());
  best.set_number(recommended.number());
  best.set_objective(recommended.predicted());
  *best.mutable_parameter_assignments() = recommended.parameter_assignments();
  status.clear_recommended_trial();
  return experiment;
}

std::string BestTable(const v1::Experiment& experiment, bool with_header) {
  const v1::ResultFront& front = experiment.status().shirabe().front();
  if (front.size() > 0) return FrontTable(experiment, with_header, front.trials_size());
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  const std::vector<std::string> objectives = ObjectiveNames(experiment.spec());
  Cells header = {"TRIAL", objectives[0], "STEP"};
  Cells cells = {best.best_trial_name(), client::ShortNumber(best.objective()),
                 best.has_step() ? std::to_string(best.step()) : ""};
  for (size_t i = 1; i < objectives.size(); ++i) {
    const auto value =
        experiment::CountedValue(experiment.spec(), best.observation(), objectives[i]);
    header.push_back(objectives[i]);
    cells.push_back(value ? client::ShortNumber(*value) : "");
  }
  for (const v1::Assignment& assignment : best.parameter_assignments()) {
    header.push_back(assignment.name());
    cells.push_back(trial::FormatAssignment(assignment));
  }
  Table table(std::move(header));
  table.Add(std::move(cells));
  return table.Render(with_header);
}

std::string ArgumentsOf(const Assignments& assignments) {
  return absl::StrJoin(assignments, " ",
                       [](std::string* out, const v1::Assignment& assignment) {
                         // Katib's examples call them --lr.
                         const bool dashes = assignment.name()[0] == '-';
                         absl::StrAppend(out, dashes ? "" : "--",
                                         ShellQuote(assignment.name() + "=" +
                                                    trial::FormatAssignment(assignment)));
                       }) +
         "\n";
}

std::string VariablesOf(const Assignments& assignments) {
  std::string text;
  for (const v1::Assignment& assignment : assignments) {
    absl::StrAppend(&text, ParameterVariable(assignment.name()), "=",
                    ShellQuote(trial::FormatAssignment(assignment)), "\n");
  }
  return text;
}

std::string BestArguments(const v1::Experiment& experiment) {
  return ArgumentsOf(experiment.status().current_optimal_trial().parameter_assignments());
}

std::string BestVariables(const v1::Experiment& experiment) {
  return VariablesOf(experiment.status().current_optimal_trial().parameter_assignments());
}

std::string BestAs(const v1::Experiment& experiment, const std::string& output) {
  if (output == "json") return PrintJson(BestJson(experiment));
  if (output == "yaml") return PrintYaml(BestJson(experiment));
  if (output == "args") return BestArguments(experiment);
  if (output == "env") return BestVariables(experiment);
  return "";
}

std::string ShellQuote(const std::string& text) {
  bool safe = !text.empty();
  for (const char c : text) safe = safe && IsSafe(c);
  if (safe) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace shirabe::view
