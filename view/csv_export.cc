#include "view/csv_export.h"

#include "absl/strings/str_join.h"
#include "base/names.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "trial/trial_template.h"

namespace shirabe::view {
namespace {

std::string JoinCells(const std::vector<std::string>& cells) {
  return absl::StrJoin(
             cells, ",",
             [](std::string* out, const std::string& cell) { out->append(CsvCell(cell)); }) +
         "\n";
}

std::string AssignmentText(const v1::Trial& trial, const std::string& name) {
  for (const v1::Assignment& assignment : trial.assignments()) {
    if (assignment.name() == name) return trial::FormatAssignment(assignment);
  }
  return "";
}

std::string ColumnNameOf(const v1::Trial& trial) {
  return TrialName({ExperimentKeyOf(trial), trial.number()});
}

}  // namespace

std::string CsvHeader(const v1::Experiment& experiment) {
  std::vector<std::string> cells = {"trial", "state", "objective", "step"};
  for (const std::string& metric : client::MetricNames(experiment))
    cells.push_back("metric." + metric);
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    cells.push_back("param." + parameter.name());
  }
  cells.insert(cells.end(), {"attempts", "start_time", "completion_time"});
  return JoinCells(cells);
}

std::string CsvLine(const v1::Experiment& experiment, const v1::Trial& trial) {
  const auto objective = client::ShownObjective(experiment, trial);
  std::vector<std::string> cells = {ColumnNameOf(trial), client::PhaseWord(trial.phase()),
                                    objective ? FormatNumber(objective->value) : "",
                                    objective ? std::to_string(objective->step) : ""};
  for (const std::string& metric : client::MetricNames(experiment)) {
    const auto value = client::ShownMetric(experiment, trial, metric);
    cells.push_back(value ? FormatNumber(value->value) : "");
  }
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    cells.push_back(AssignmentText(trial, parameter.name()));
  }
  cells.insert(cells.end(), {std::to_string(trial.attempts()), FormatTime(trial.start_time()),
                             FormatTime(trial.completion_time())});
  return JoinCells(cells);
}

std::string JsonLine(const v1::Experiment& experiment, const v1::Trial& trial) {
  const auto objective = client::ShownObjective(experiment, trial);
  Json tree = {{"trial", ColumnNameOf(trial)},
               {"state", client::PhaseWord(trial.phase())},
               {"objective", objective ? NumberJson(objective->value) : Json()},
               {"step", objective ? Json(objective->step) : Json()},
               {"metrics", Json::object()},
               {"params", Json::object()}};
  for (const std::string& metric : client::MetricNames(experiment)) {
    const auto value = client::ShownMetric(experiment, trial, metric);
    tree["metrics"][metric] = value ? NumberJson(value->value) : Json();
  }
  for (const v1::Assignment& assignment : trial.assignments()) {
    tree["params"][assignment.name()] = TypedValue(assignment);
  }
  tree["attempts"] = trial.attempts();
  if (trial.has_start_time()) tree["start_time"] = FormatTime(trial.start_time());
  if (trial.has_completion_time()) tree["completion_time"] = FormatTime(trial.completion_time());
  return PrintJsonLine(tree) + "\n";
}

std::string CsvCell(const std::string& text) {
  const bool blank_end = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!blank_end && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + "\"";
}

}  // namespace shirabe::view
