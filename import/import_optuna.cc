#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "db/sqlite/sqlite.h"
#include "experiment/annotations.h"
#include "experiment/spec/spec_limits.h"
#include "import/import_readers.h"
#include "import/optuna_space.h"

// Tables of Optuna's storage (its RDB schema, 2.0 and later):
//   studies(study_id, study_name)            study_directions(study_id, direction, objective)
//   trials(trial_id, number, study_id, state, datetime_start, datetime_complete)
//   trial_params(trial_id, param_name, param_value, distribution_json): the value in the
//     distribution's own numbers, for a categorical one the index of the choice
//   trial_values(trial_id, objective, value[, value_type])
//   trial_intermediate_values(trial_id, step, intermediate_value[, intermediate_value_type])
//   study_system_attributes(study_id, key, value_json): study:metric_names
//   study_user_attributes(study_id, key, value_json)
//   trial_user_attributes(trial_id, key, value_json)
//   trial_system_attributes(trial_id, key, value_json): constraints, constraints:NAME
// The value types are FINITE, INF_POS, INF_NEG and (intermediate only) NAN.

namespace shirabe::import {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxNotes = 1 << 20;  // bytes in all, of a request that a server takes
constexpr char kMetric[] = "value";    // Optuna's objective has no name of its own

struct Study {
  int64_t id = 0;
  std::string name;
};

struct Objective {
  std::string metric = {};
  bool maximize = false;
};

class Reader {
 public:
  explicit Reader(db::SqliteConnection* file) : file_(file) {}

  StatusOr<std::vector<Study>> Studies(const std::string& wanted);
  StatusOr<client::Imported> Read(const Study& study);

 private:
  StatusOr<std::vector<Objective>> ReadObjectives(const Study& study);
  Json MetricNames(const Study& study);
  bool HasTable(const std::string& name);
  Status ReadValues(const Study& study, const std::vector<Objective>& objectives);
  Status ReadConstraints(const Study& study, const std::vector<Objective>& objectives,
                         client::Imported& imported);
  Status ReadUserAttributes(const Study& study, client::Imported& imported);
  Status ReadTrials(const Study& study, client::Imported& imported);
  Status ReadParameters(const Study& study);
  Status ReadPoints(const Study& study, const std::vector<Objective>& objectives,
                    const std::string& sql);
  db::SqliteConnection* const file_;
  std::map<int64_t, client::ImportedTrial> trials_;
  OptunaSpace space_;
};

StatusOr<std::vector<Study>> Reader::Studies(const std::string& wanted) {
  std::vector<Study> studies;
  std::vector<std::string> names;
  auto rows = file_->Prepare("SELECT study_id, study_name FROM studies ORDER BY study_id");
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    names.push_back(rows.Text(1));
    if (wanted.empty() || wanted == names.back()) studies.push_back({rows.Int(0), names.back()});
  }
  if (!studies.empty()) return studies;
  std::string known;
  for (const std::string& name : names) absl::StrAppend(&known, known.empty() ? "" : ", ", name);
  return absl::NotFoundError(wanted.empty()
                                 ? "there is no study in it"
                                 : "there is no study \"" + wanted + "\" in it; it has " + known);
}

// By their order in the study; without a name of their own they are value, or value_0, value_1, ….
StatusOr<std::vector<Objective>> Reader::ReadObjectives(const Study& study) {
  auto rows = file_->Prepare(
      "SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective");
  rows.Bind(study.id);
  std::vector<Objective> objectives;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    objectives.push_back({.maximize = rows.Text(0) == "MAXIMIZE"});
  }
  if (objectives.empty()) objectives.emplace_back();
  const Json names = MetricNames(study);
  std::set<std::string> seen = {""};  // nor may one be empty
  for (size_t i = 0; i < objectives.size(); ++i) {
    objectives[i].metric = objectives.size() == 1 ? kMetric : absl::StrCat(kMetric, "_", i);
    const bool named = names.is_array() && i < names.size() && names[i].is_string();
    const std::string name = named ? names[i].get<std::string>() : "";
    if (seen.insert(name).second) objectives[i].metric = name;
  }
  return objectives;
}

// Studies of old versions have no such tables.
bool Reader::HasTable(const std::string& name) {
  const auto known =
      file_->ReadInt("SELECT count(*) FROM sqlite_schema WHERE name = '" + name + "'");
  return known.ok() && *known == 1;
}

// Of Study.set_metric_names; null where there are none.
Json Reader::MetricNames(const Study& study) {
  if (!HasTable("study_system_attributes")) return nullptr;
  auto rows = file_->Prepare(
      "SELECT value_json FROM study_system_attributes WHERE study_id = ?"
      " AND key = 'study:metric_names'");
  rows.Bind(study.id);
  const auto more = rows.Step();
  return more.ok() && *more ? ReadJsonOrDiscarded<Json>(rows.Text(0)) : Json();
}

// 2026-11-21 08:30:00.123456, in the local time of its writer, which is taken for UTC.
absl::Time TimeFrom(const std::string& text) {
  absl::Time time = absl::InfinitePast();
  absl::ParseTime("%Y-%m-%d %H:%M:%E*S", text, &time, nullptr);
  return time;
}

Status Reader::ReadTrials(const Study& study, client::Imported& imported) {
  auto rows = file_->Prepare(
      "SELECT trial_id, number, state, datetime_start, datetime_complete FROM trials"
      " WHERE study_id = ? ORDER BY number");
  rows.Bind(study.id);
  int64_t open = 0;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    const std::string state = rows.Text(2);
    if (state == "RUNNING" || state == "WAITING") {
      ++open;
      continue;
    }
    client::ImportedTrial trial{.name = absl::StrCat("trial ", rows.Int(1))};
    trial.phase = state == "COMPLETE" ? v1::TRIAL_SUCCEEDED
                  : state == "PRUNED" ? v1::TRIAL_EARLY_STOPPED
                                      : v1::TRIAL_FAILED;
    trial.start = TimeFrom(rows.Text(3));
    trial.end = TimeFrom(rows.Text(4));
    trials_.emplace(rows.Int(0), std::move(trial));
  }
  if (open > 0) imported.notes.push_back(absl::StrCat(open, " trials had not ended"));
  return absl::OkStatus();
}

Status Reader::ReadParameters(const Study& study) {
  auto rows = file_->Prepare(
      "SELECT p.trial_id, p.param_name, p.param_value, p.distribution_json FROM trial_params p"
      " JOIN trials t ON t.trial_id = p.trial_id WHERE t.study_id = ? ORDER BY p.param_id");
  rows.Bind(study.id);
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) return absl::OkStatus();
    const auto trial = trials_.find(rows.Int(0));
    if (trial == trials_.end()) continue;
    const std::string name = rows.Text(1);
    const Json distribution = ReadJsonOrDiscarded<Json>(rows.Text(3));
    if (!distribution.is_object()) {
      return absl::DataLossError("the distribution of " + name + " is not JSON");
    }
    auto text = space_.Add(name, distribution, rows.Double(2));
    RETURN_IF_ERROR(Prefix(trial->second.name + ", " + name, text.status()));
    trial->second.values.emplace_back(name, *std::move(text));
  }
}

// Trial, step, value and number of the objective, and whether the value is NULL: one that is not a
// finite number is, and says which by its type. Where that is the result, what came before it is
// none.
Status Reader::ReadPoints(const Study& study, const std::vector<Objective>& objectives,
                          const std::string& sql) {
  auto rows = file_->Prepare(sql);
  rows.Bind(study.id);
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) return absl::OkStatus();
    const auto trial = trials_.find(rows.Int(0));
    const int64_t objective = rows.Int(3);
    if (trial == trials_.end() || objective < 0 ||
        objective >= static_cast<int64_t>(objectives.size())) {
      continue;
    }
    auto& points = trial->second.points;
    const std::string& metric = objectives[objective].metric;
    if (rows.Int(4) == 0) {
      points.push_back({metric, rows.Int(1), rows.Double(2)});
    } else {
      std::erase_if(points, [&](const auto& point) { return point.metric == metric; });
    }
  }
}

Status Reader::ReadValues(const Study& study, const std::vector<Objective>& objectives) {
  RETURN_IF_ERROR(ReadPoints(
      study, objectives,
      "SELECT v.trial_id, v.step, v.intermediate_value, 0, 0 FROM trial_intermediate_values v"
      " JOIN trials t ON t.trial_id = v.trial_id WHERE t.study_id = ?"
      " AND v.intermediate_value IS NOT NULL ORDER BY v.step"));
  // The result comes after all that was reported on the way.
  return ReadPoints(
      study, objectives,
      "SELECT v.trial_id, 1 + (SELECT coalesce(max(step), 0) FROM trial_intermediate_values i"
      " WHERE i.trial_id = v.trial_id), v.value, v.objective, v.value IS NULL FROM trial_values v"
      " JOIN trials t ON t.trial_id = v.trial_id WHERE t.study_id = ?");
}

// What a trial says of its constraints: a list of a sampler's constraints_func, whose entries have
// no names, or one attribute each (Trial.set_constraint of Optuna 5). At most 0 keeps one.
Status Reader::ReadConstraints(const Study& study, const std::vector<Objective>& objectives,
                               client::Imported& imported) {
  if (!HasTable("trial_system_attributes")) return absl::OkStatus();
  auto rows = file_->Prepare(
      "SELECT a.trial_id, a.key, a.value_json FROM trial_system_attributes a"
      " JOIN trials t ON t.trial_id = a.trial_id WHERE t.study_id = ? AND (a.key = 'constraints'"
      " OR a.key LIKE 'constraints:%') ORDER BY a.trial_id, a.key");
  rows.Bind(study.id);
  std::set<std::string> names;
  int64_t beyond = 0;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) break;
    const auto trial = trials_.find(rows.Int(0));
    if (trial == trials_.end()) continue;
    const std::string key = rows.Text(1);
    const Json value = ReadJsonOrDiscarded<Json>(rows.Text(2));
    const auto add = [&](std::string name, const Json& number) {
      if (!number.is_number()) return;
      const auto same = [&](const Objective& of) { return of.metric == name; };
      while (std::any_of(objectives.begin(), objectives.end(), same)) name += "'";
      if (names.size() >= experiment::kMaxConstraints && !names.contains(name)) {
        ++beyond;
        return;
      }
      names.insert(name);
      trial->second.points.push_back({name, 0, number.get<double>()});
    };
    const size_t colon = key.find(':');
    if (colon != std::string::npos) add("constraint." + key.substr(colon + 1), value);
    if (colon != std::string::npos || !value.is_array()) continue;
    for (size_t i = 0; i < value.size(); ++i) add(absl::StrCat("constraint.", i), value[i]);
  }
  if (beyond > 0) {
    imported.notes.push_back(absl::StrCat(beyond, " values of constraints are left out: of ",
                                          experiment::kMaxConstraints, " at most are taken"));
  }
  for (const std::string& name : names) {
    imported.further["constraints"].push_back({{"metricName", name}, {"max", 0}});
  }
  return absl::OkStatus();
}

// set_user_attr of a study and of its trials: lines of their notes.
Status Reader::ReadUserAttributes(const Study& study, client::Imported& imported) {
  size_t left = kMaxNotes;
  int64_t left_out = 0;
  // Whose note it is, of the first column; null: of none that is imported.
  const auto read = [&](const std::string& sql, size_t max, const auto& note_of) -> Status {
    auto rows = file_->Prepare(sql);
    rows.Bind(study.id);
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, rows.Step());
      if (!more) return absl::OkStatus();
      std::string* const note = note_of(rows.Int(0));
      if (note == nullptr) continue;
      const std::string line = absl::StrCat("- ", rows.Text(1), ": ", rows.Text(2), "\n");
      if (note->size() + line.size() > max || line.size() > left) {
        ++left_out;
        continue;
      }
      *note += line;
      left -= line.size();
    }
  };
  if (HasTable("study_user_attributes")) {
    RETURN_IF_ERROR(
        read("SELECT study_id, key, value_json FROM study_user_attributes WHERE study_id = ?"
             " ORDER BY key",
             experiment::kMaxNoteBytes, [&](int64_t) { return &imported.note; }));
  }
  if (HasTable("trial_user_attributes")) {
    const auto note_of = [&](int64_t id) {
      const auto trial = trials_.find(id);
      return trial == trials_.end() ? nullptr : &trial->second.note;
    };
    RETURN_IF_ERROR(
        read("SELECT a.trial_id, a.key, a.value_json FROM trial_user_attributes a JOIN trials t"
             " ON t.trial_id = a.trial_id WHERE t.study_id = ? ORDER BY a.trial_id, a.key",
             experiment::kMaxTrialNoteBytes, note_of));
  }
  if (left_out > 0) {
    imported.notes.push_back(
        absl::StrCat(left_out, " user attributes are left out: notes have no room for them"));
  }
  return absl::OkStatus();
}

StatusOr<client::Imported> Reader::Read(const Study& study) {
  trials_.clear();
  space_ = {};
  client::Imported imported{.name = client::ExperimentNameFrom(study.name),
                            .source = "Optuna study " + study.name};
  ASSIGN_OR_RETURN(const auto objectives, ReadObjectives(study));
  const auto type = [](const Objective& of) { return of.maximize ? "maximize" : "minimize"; };
  const Objective& first = objectives[0];
  imported.objective = {
      {"type", type(first)},
      {"objectiveMetricName", first.metric},
      {"metricStrategies", Json::array({{{"name", first.metric}, {"value", "latest"}}})}};
  for (size_t i = 1; i < objectives.size(); ++i) {
    imported.further["additionalObjectives"].push_back(
        {{"metricName", objectives[i].metric}, {"type", type(objectives[i])}});
  }
  RETURN_IF_ERROR(ReadTrials(study, imported));
  RETURN_IF_ERROR(ReadParameters(study));
  RETURN_IF_ERROR(ReadValues(study, objectives));
  RETURN_IF_ERROR(ReadConstraints(study, objectives, imported));
  RETURN_IF_ERROR(ReadUserAttributes(study, imported));
  std::vector<OptunaSpace::Values> trials;
  for (const auto& [id, trial] : trials_) {
    const bool failed = trial.phase == v1::TRIAL_FAILED;
    if (failed || trial.values.empty()) continue;
    trials.emplace_back(trial.values.begin(), trial.values.end());
  }
  space_.Describe(trials, imported);
  for (auto& [id, trial] : trials_) imported.trials.push_back(std::move(trial));
  if (objectives.size() == 1) DropBetterPruned(imported);
  return imported;
}

}  // namespace

StatusOr<std::vector<client::Imported>> ReadOptuna(const std::string& place,
                                                   const std::string& study) {
  // As Optuna is given it, or its file.
  const std::string path(absl::StripPrefix(place, "sqlite:///"));
  const std::string absolute = std::filesystem::absolute(path).string();
  if (!std::filesystem::exists(absolute)) return absl::NotFoundError("there is no file " + path);
  auto file =
      db::SqliteConnection::Open({.path = absolute, .mode = db::ConnectOptions::Mode::kRead});
  RETURN_IF_ERROR(Prefix(path, file.status()));
  const auto known = (*file)->ReadInt(
      "SELECT count(*) FROM sqlite_schema WHERE name IN ('studies', 'study_directions', 'trials',"
      " 'trial_params', 'trial_values', 'trial_intermediate_values')");
  if (!known.ok() || *known != 6) {
    return absl::InvalidArgumentError(
        path + " is not a storage of Optuna 2.0 or later: give the file of its sqlite:///FILE");
  }
  Reader reader(file->get());
  auto studies = reader.Studies(study);
  RETURN_IF_ERROR(Prefix(path, studies.status()));
  std::vector<client::Imported> all;
  for (const Study& one : *studies) {
    auto imported = reader.Read(one);
    RETURN_IF_ERROR(Prefix(path, imported.status()));
    all.push_back(*std::move(imported));
  }
  return all;
}

}  // namespace shirabe::import
