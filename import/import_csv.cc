#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/text/did_you_mean.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "client/records/enum_words.h"
#include "import/import_readers.h"
#include "import/optuna_space.h"

namespace shirabe::import {
namespace {

using Row = std::vector<std::string>;

struct TableText {
  std::vector<Row> rows;
  std::vector<int> lines;  // on which each begins
};

// RFC 4180: quoted cells may hold commas, newlines and doubled quotes.
StatusOr<TableText> Split(const std::string& path, const std::string& text) {
  TableText table;
  Row row(1);
  bool quoted = false, begun = false;
  int line = 1, first_line = 1;
  const auto end_row = [&] {
    if (begun) {
      table.rows.push_back(row);
      table.lines.push_back(first_line);
    }
    row.assign(1, "");
    begun = false;
    first_line = line;
  };
  constexpr char kByteOrderMark[] = "\xEF\xBB\xBF";  // as Excel writes it
  for (size_t i = absl::StartsWith(text, kByteOrderMark) ? 3 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        row.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        row.back() += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '\n') {
      end_row();
    } else if (c == ',') {
      row.emplace_back();
      begun = true;
    } else if (c != '\r') {
      if (c == '"' && row.back().empty())
        quoted = true;
      else
        row.back() += c;
      begun = true;
    }
  }
  if (quoted) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", first_line, ": a quote is not closed"));
  }
  end_row();
  return table;
}

// What a column is.
struct Columns {
  size_t objective = std::string::npos;
  size_t state = std::string::npos;
  bool of_optuna = false;
  std::vector<std::pair<size_t, std::string>> parameters;
  std::vector<std::pair<size_t, std::string>> metrics;  // the objective among them
};

// Columns of `shirabe export` that are neither parameters nor metrics.
bool IsExtra(const std::string& name) {
  static const std::set<std::string> extras = {"trial",    "state",      "objective",      "step",
                                               "attempts", "start_time", "completion_time"};
  return extras.contains(name);
}

constexpr char kOptunaPrefix[] = "params_";

// What the columns of parameters begin with: in tables of `shirabe export`, of Ray Tune's
// ResultGrid.get_dataframe and of Optuna's Study.trials_dataframe. "" where all others are some.
std::string ParameterPrefix(const Row& header) {
  const auto has = [&](const std::string& name) { return absl::c_linear_search(header, name); };
  const bool optuna = has("number") && has("state");
  for (const std::string prefix : {"param.", "config/", kOptunaPrefix}) {
    if (prefix == kOptunaPrefix && !optuna) continue;
    const auto begins = [&](const std::string& name) { return absl::StartsWith(name, prefix); };
    if (absl::c_any_of(header, begins)) return prefix;
  }
  return "";
}

bool IsWanted(const CsvOptions& options, const std::string& prefix, const std::string& name) {
  const auto& names = options.parameters;
  return names.empty() || absl::c_any_of(names, [&](const std::string& wanted) {
           return absl::StripPrefix(wanted, prefix) == name;
         });
}

Status NoColumn(const std::string& path, const Row& header, const std::string& name) {
  const auto nearest = Nearest(name, header);
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has no column \"", name, "\"; it has ", absl::StrJoin(header, ", "),
                   nearest ? "; did you mean " + *nearest : "", nearest ? "?" : ""));
}

StatusOr<Columns> FindColumns(const std::string& path, const Row& header,
                              const CsvOptions& options) {
  Columns columns;
  const std::string prefix = ParameterPrefix(header);
  columns.of_optuna = prefix == kOptunaPrefix;
  for (size_t i = 0; i < header.size(); ++i) {
    const std::string& name = header[i];
    if (name == options.metric || name == "metric." + options.metric) {
      columns.objective = i;
      columns.metrics.emplace_back(i, options.metric);
    } else if (name == "state") {
      columns.state = i;
    } else if (absl::StartsWith(name, "metric.")) {
      columns.metrics.emplace_back(i, name.substr(7));
    } else if (absl::StartsWith(name, prefix) && !(prefix.empty() && IsExtra(name))) {
      std::string parameter = name.substr(prefix.size());
      if (IsWanted(options, prefix, parameter)) {
        columns.parameters.emplace_back(i, std::move(parameter));
      }
    }
  }
  for (const auto* list : {&columns.metrics, &columns.parameters}) {
    std::set<std::string> names;
    for (const auto& [i, name] : *list) {
      if (names.insert(name).second) continue;
      return absl::InvalidArgumentError(path + " has two columns \"" + name + "\": rename one");
    }
  }
  if (columns.objective == std::string::npos) return NoColumn(path, header, options.metric);
  for (const std::string& name : options.parameters) {
    const bool found = absl::c_any_of(columns.parameters, [&](const auto& one) {
      return one.second == absl::StripPrefix(name, prefix);
    });
    if (!found) return NoColumn(path, header, name);
  }
  if (columns.parameters.empty()) {
    return absl::InvalidArgumentError(path +
                                      " has no column of a parameter: beside the metric "
                                      "there is nothing in it; it has " +
                                      absl::StrJoin(header, ", "));
  }
  return columns;
}

// The words of Shirabe and of Optuna.
v1::TrialPhase PhaseFrom(const std::string& word) {
  for (const v1::TrialPhase phase : {v1::TRIAL_PENDING, v1::TRIAL_RUNNING, v1::TRIAL_EARLY_STOPPED,
                                     v1::TRIAL_FAILED, v1::TRIAL_KILLED}) {
    if (absl::EqualsIgnoreCase(word, client::PhaseWord(phase))) return phase;
  }
  if (word == "WAITING") return v1::TRIAL_PENDING;
  if (word == "PRUNED") return v1::TRIAL_EARLY_STOPPED;
  if (word == "FAIL") return v1::TRIAL_FAILED;
  return v1::TRIAL_SUCCEEDED;
}

StatusOr<client::ImportedTrial> ReadRow(const Row& row, const Columns& columns) {
  client::ImportedTrial trial;
  for (const auto& [i, name] : columns.parameters) {
    if (!row[i].empty()) trial.values.emplace_back(name, row[i]);
  }
  if (columns.state != std::string::npos) trial.phase = PhaseFrom(row[columns.state]);
  for (const auto& [i, name] : columns.metrics) {
    if (row[i].empty()) continue;
    const auto value = ParseNumber(row[i]);
    if (!value) return absl::InvalidArgumentError(name + " is not a number: \"" + row[i] + "\"");
    trial.points.push_back({name, 1, *value});
  }
  if (trial.points.empty() && trial.phase == v1::TRIAL_SUCCEEDED) trial.phase = v1::TRIAL_FAILED;
  return trial;
}

void AddEmpty(const std::string& name, client::ImportedTrial& trial) {
  const auto same = [&](const auto& value) { return value.first == name; };
  if (!absl::c_any_of(trial.values, same)) trial.values.emplace_back(name, "");
}

// Sets the parameters, and conditions for those that have empty cells.
void DescribeParameters(const Columns& columns, client::Imported& imported) {
  std::vector<TrialValues> trials;
  std::map<std::string, std::vector<std::string>> values;
  for (const client::ImportedTrial& trial : imported.trials) {
    for (const auto& [name, value] : trial.values) values[name].push_back(value);
    // It may have failed before it had its parameters.
    if (trial.phase == v1::TRIAL_FAILED || trial.values.empty()) continue;
    trials.emplace_back(trial.values.begin(), trial.values.end());
  }
  std::map<std::string, nlohmann::ordered_json> spaces;
  std::map<std::string, ParameterKind> kinds;
  for (const auto& [i, name] : columns.parameters) {
    spaces[name] = client::SpaceFromValues(name, values[name]);
    ParameterKind& kind = kinds[name];
    // What is different in each trial, such as its name, tells nothing of another.
    const std::set<std::string> different(values[name].begin(), values[name].end());
    if (different.size() < trials.size()) kind.kind = spaces[name]["parameterType"];
  }
  const ToldParameters told = FindConditions(kinds, trials);
  for (const nlohmann::ordered_json& condition : told.conditions) {
    imported.further["space"]["conditions"].push_back(condition);
    imported.notes.push_back(absl::StrCat("column ", condition["parameter"].get<std::string>(),
                                          " has empty cells: it is taken to exist where ",
                                          JsonText(condition["when"])));
  }
  for (const auto& [i, name] : columns.parameters) {
    if (!told.names.contains(name)) {
      imported.notes.push_back("column " + name +
                               " has empty cells, and no other column tells where: it is "
                               "categorical, and \"\" one of its values");
      for (client::ImportedTrial& trial : imported.trials) AddEmpty(name, trial);
      values[name].push_back("");
      spaces[name] = client::SpaceFromValues(name, values[name]);
    }
    imported.parameters.push_back(std::move(spaces[name]));
  }
}

}  // namespace

StatusOr<client::Imported> ReadCsv(const std::string& path, const std::string& text,
                                   const CsvOptions& options) {
  ASSIGN_OR_RETURN(const TableText table, Split(path, text));
  if (table.rows.size() < 2) {
    return absl::InvalidArgumentError(path + " has no rows: a header line, then one a trial");
  }
  ASSIGN_OR_RETURN(const Columns columns, FindColumns(path, table.rows[0], options));
  client::Imported imported{
      .name = options.name, .source = path, .parameters = nlohmann::ordered_json::array()};
  for (size_t i = 1; i < table.rows.size(); ++i) {
    const std::string place = absl::StrCat(path, ":", table.lines[i]);
    if (table.rows[i].size() != table.rows[0].size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, ": ", table.rows[i].size(), " cells, but the header has ", table.rows[0].size()));
    }
    auto trial = ReadRow(table.rows[i], columns);
    RETURN_IF_ERROR(Prefix(place, trial.status()));
    trial->name = absl::StrCat("line ", table.lines[i]);
    if (client::IsTerminal(trial->phase)) imported.trials.push_back(*std::move(trial));
  }
  if (imported.trials.empty()) {
    return absl::InvalidArgumentError(path + " has no trial that had ended");
  }
  if (const size_t open = table.rows.size() - 1 - imported.trials.size(); open > 0) {
    imported.notes.push_back(absl::StrCat(open, " trials had not ended"));
  }
  DescribeParameters(columns, imported);
  imported.objective = {{"type", options.maximize ? "maximize" : "minimize"},
                        {"objectiveMetricName", options.metric}};
  for (const auto& [i, name] : columns.metrics) {
    if (name != options.metric) imported.objective["additionalMetricNames"].push_back(name);
  }
  if (columns.of_optuna) DropBetterPruned(imported);
  return imported;
}

}  // namespace shirabe::import
