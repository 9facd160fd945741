#include "client/import_batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/rng.h"
#include "base/sorting.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/annotations.h"
#include "experiment/conditions.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/spec/trial_point.h"
#include "experiment/spec/trial_result.h"
#include "experiment/state/shared_history.h"
#include "experiment/submission.h"
#include "suggestion/space/search_space.h"

namespace shirabe::client {
namespace {

constexpr size_t kMaxNameSize = 40;  // as base/names has it
constexpr char kReason[] = "ExperimentImported";

bool IsWhole(double value) { return value == std::floor(value) && std::abs(value) < 0x1p53; }

// ---- the specification -------------------------------------------------------------------------

StatusOr<nlohmann::ordered_json> MakeShirabeSpec(const nlohmann::ordered_json& further) {
  nlohmann::ordered_json spec = {{"askAndTell", true}};
  if (!further.is_object()) return absl::InvalidArgumentError("further: is not a JSON object");
  for (const auto& [name, value] : further.items()) {
    if (name != "additionalObjectives" && name != "constraints" && name != "space") {
      return absl::InvalidArgumentError("further: " + Quoted(name) +
                                        " is not additionalObjectives, constraints or space");
    }
    spec[name] = value;
  }
  return spec;
}

StatusOr<v1::Experiment> MakeExperiment(const std::string& ns, const Imported& imported) {
  ASSIGN_OR_RETURN(const auto shirabe, MakeShirabeSpec(imported.further));
  const nlohmann::ordered_json tree = {
      {"apiVersion", "kubeflow.org/v1beta1"},
      {"kind", "Experiment"},
      {"metadata", {{"name", imported.name}, {"namespace", ns}}},
      {"spec",
       {{"objective", imported.objective},
        {"algorithm", {{"algorithmName", "random"}}},
        {"maxTrialCount", std::max<size_t>(1, imported.trials.size())},
        {"parameters", imported.parameters},
        {"shirabe", shirabe}}}};
  auto parsed = experiment::ParseExperiments(JsonText(tree));
  for (const experiment::Finding& finding : parsed[0].findings) {
    if (finding.warning) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(imported.source, ": ", finding.path, ": ", finding.message));
  }
  return std::move(parsed[0].experiment);
}

StatusOr<v1::Assignment> Typed(const v1::ParameterSpec& parameter, const std::string& text) {
  v1::Assignment assignment;
  assignment.set_name(parameter.name());
  if (parameter.parameter_type() == v1::CATEGORICAL) {
    assignment.set_category(text);
    return assignment;
  }
  const auto number = ParseNumber(text);
  if (!number) {
    return absl::InvalidArgumentError(parameter.name() + " is not a number: \"" + text + "\"");
  }
  if (parameter.parameter_type() == v1::INT && IsWhole(*number)) {
    assignment.set_integer(static_cast<int64_t>(*number));
  } else {
    assignment.set_number(*number);
  }
  return assignment;
}

StatusOr<std::vector<v1::Assignment>> AllTyped(const v1::ExperimentSpec& spec,
                                               const ImportedTrial& trial) {
  // The first of a name counts.
  const std::map<std::string, std::string> values(trial.values.begin(), trial.values.end());
  const std::set<std::string> conditional = experiment::ConditionalParameters(spec);
  std::vector<v1::Assignment> assignments;
  for (const v1::ParameterSpec& parameter : spec.parameters()) {
    const auto found = values.find(parameter.name());
    if (found == values.end()) {
      if (conditional.contains(parameter.name())) continue;  // the space knows whether it must be
      return absl::InvalidArgumentError("it has no " + parameter.name());
    }
    ASSIGN_OR_RETURN(v1::Assignment assignment, Typed(parameter, found->second));
    assignments.push_back(std::move(assignment));
  }
  return assignments;
}

// ---- the records -------------------------------------------------------------------------------

v1::Cause CauseOf(v1::TrialPhase phase) {
  switch (phase) {
    case v1::TRIAL_EARLY_STOPPED: return v1::EARLY_STOPPED;
    case v1::TRIAL_FAILED: return v1::APP_ERROR;
    case v1::TRIAL_KILLED: return v1::USER;
    default: return v1::COMPLETED;
  }
}

std::string NoteFrom(const std::string& text, size_t max) {
  if (text.size() <= max) return Printable(text);
  const std::string cut = "…";
  return Printable(text.substr(0, max - cut.size())) + cut;
}

void SetTimes(const ImportedTrial& from, absl::Time now, v1::Trial& trial) {
  const absl::Time end = from.end == absl::InfinitePast() ? now : from.end;
  const absl::Time start = from.start == absl::InfinitePast() ? end : std::min(from.start, end);
  *trial.mutable_creation_time() = ToProto(start);
  *trial.mutable_start_time() = ToProto(start);
  *trial.mutable_completion_time() = ToProto(end);
  trial.set_seconds(absl::ToDoubleSeconds(end - start));
}

Status CheckMetrics(const ImportedTrial& trial) {
  std::set<std::string> names;
  for (const ImportedObservation& point : trial.points) {
    if (point.metric.empty() || point.metric.size() > experiment::kMaxNameBytes) {
      return absl::InvalidArgumentError(absl::StrCat("the name of a metric has ",
                                                     point.metric.size(), " bytes, not from 1 to ",
                                                     experiment::kMaxNameBytes));
    }
    if (point.step < 0 || point.step == std::numeric_limits<int64_t>::max()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the step of metric \"", point.metric, "\" must be from 0 to ",
                       std::numeric_limits<int64_t>::max() - 1, ", not ", point.step));
    }
    names.insert(point.metric);
  }
  if (names.size() <= experiment::kMaxMetrics) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it has ", names.size(), " metrics, and at most ",
                                                 experiment::kMaxMetrics, " are taken"));
}

void SetResult(const v1::ExperimentSpec& spec, const ImportedTrial& from, v1::Trial& trial) {
  std::vector<ImportedObservation> points = from.points;
  StableSort(points, [](const ImportedObservation& a, const ImportedObservation& b) {
    return a.step < b.step;
  });
  for (const ImportedObservation& point : points) {
    experiment::AddValue(*trial.mutable_observation(), point.metric, point.step, point.value);
    trial.set_last_step(std::max(trial.last_step(), point.step));
  }
  trial.set_reached_step(trial.last_step());
  if (const auto value = experiment::ObjectiveOf(spec.objective(), trial.observation())) {
    trial.set_objective(value->value);
    trial.set_objective_step(value->step);
  }
  trial.set_infeasible(!experiment::IsOfUse(spec, trial));
}

v1::Attempt AttemptOf(const v1::Trial& trial) {
  v1::Attempt attempt;
  attempt.set_namespace_(trial.namespace_());
  attempt.set_experiment(trial.experiment());
  attempt.set_trial(trial.number());
  attempt.set_number(1);
  attempt.set_token(RandomBytes(16));
  attempt.set_state(v1::ATTEMPT_CLOSED);
  attempt.set_cause(CauseOf(trial.phase()));
  *attempt.mutable_creation_time() = trial.creation_time();
  *attempt.mutable_start_time() = trial.start_time();
  *attempt.mutable_end_time() = trial.completion_time();
  attempt.set_seconds(trial.seconds());
  attempt.set_last_step(trial.last_step());
  attempt.set_steps_gained(trial.last_step());
  return attempt;
}

void Count(const v1::Trial& trial, v1::ExperimentStatus& status) {
  status.set_trials(trial.number());
  status.mutable_shirabe()->set_seconds(status.shirabe().seconds() + trial.seconds());
  switch (trial.phase()) {
    case v1::TRIAL_FAILED: return status.set_trials_failed(status.trials_failed() + 1);
    case v1::TRIAL_KILLED: return status.set_trials_killed(status.trials_killed() + 1);
    case v1::TRIAL_EARLY_STOPPED:
      return status.set_trials_early_stopped(status.trials_early_stopped() + 1);
    default: return status.set_trials_succeeded(status.trials_succeeded() + 1);
  }
}

void AddCondition(const std::string& type, const std::string& message, absl::Time now,
                  v1::ExperimentStatus& status) {
  v1::Condition* condition = status.add_conditions();
  condition->set_type(type);
  condition->set_status("True");
  condition->set_reason(kReason);
  condition->set_message(message);
  *condition->mutable_last_update_time() = ToProto(now);
  *condition->mutable_last_transition_time() = ToProto(now);
}

void Finish(const Imported& imported, absl::Time now, v1::Experiment& experiment) {
  v1::ObjectMeta& metadata = *experiment.mutable_metadata();
  metadata.set_generation(1);
  metadata.set_uid(absl::BytesToHexString(RandomBytes(16)));
  *metadata.mutable_creation_timestamp() = ToProto(now);
  v1::ExperimentStatus& status = *experiment.mutable_status();
  const std::string message = absl::StrCat(status.trials(), " trials of ", imported.source);
  AddCondition("Created", message, now, status);
  AddCondition("Succeeded", message, now, status);
  *status.mutable_start_time() = ToProto(now);
  *status.mutable_completion_time() = ToProto(now);
  status.mutable_shirabe()->set_note(NoteFrom(imported.note, experiment::kMaxNoteBytes));
  v1::Actor& by = *status.mutable_shirabe()->mutable_created_by();
  by = imported.actor;
  *by.mutable_time() = ToProto(now);
}

struct Builder {
  const Imported& imported;
  const absl::Time now;
  const suggestion::Space space;
  v1::Experiment experiment;
  experiment::SharedHistory history;
  db::Batch batch = {};

  Status Add(const ImportedTrial& from);
};

Status Builder::Add(const ImportedTrial& from) {
  RETURN_IF_ERROR(CheckMetrics(from));
  ASSIGN_OR_RETURN(const auto assignments, AllTyped(experiment.spec(), from));
  ASSIGN_OR_RETURN(const suggestion::Point point, space.Encode(assignments));
  v1::Trial trial;
  trial.set_namespace_(experiment.metadata().namespace_());
  trial.set_experiment(experiment.metadata().name());
  trial.set_number(experiment.status().trials() + 1);
  trial.mutable_point()->mutable_x()->Assign(point.begin(), point.end());
  trial.mutable_assignments()->Assign(assignments.begin(), assignments.end());
  trial.set_explanation(from.name + " of " + imported.source);
  trial.set_phase(from.phase);
  trial.set_reason("Imported");
  trial.set_message(from.message);
  trial.set_note(NoteFrom(from.note, experiment::kMaxTrialNoteBytes));
  trial.set_attempts(1);
  trial.set_failures(from.phase == v1::TRIAL_FAILED ? 1 : 0);
  SetTimes(from, now, trial);
  SetResult(experiment.spec(), from, trial);
  Count(trial, *experiment.mutable_status());
  if (!trial.infeasible()) experiment::OfferBest(trial, experiment);
  history.Add(trial);
  for (const ImportedObservation& row : from.points) {
    batch.observations.push_back({.trial = trial.number(),
                                  .attempt = 1,
                                  .metric = row.metric,
                                  .step = row.step,
                                  .value = row.value,
                                  .time = FromProto(trial.completion_time())});
  }
  batch.attempts.push_back({AttemptOf(trial), 0});
  batch.trials.push_back({std::move(trial), 0});
  return absl::OkStatus();
}

}  // namespace

std::string ExperimentNameFrom(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const char low = absl::ascii_tolower(c);
    const bool fits = absl::ascii_islower(low) || absl::ascii_isdigit(low);
    if (fits) name += low;
    if (!fits && !name.empty() && name.back() != '-') name += '-';
  }
  name = name.substr(0, kMaxNameSize);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "imported" : name;
}

nlohmann::ordered_json SpaceFromValues(const std::string& name,
                                       const std::vector<std::string>& values) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  bool whole = true, numeric = !values.empty();
  for (const std::string& text : values) {
    const auto number = ParseNumber(text);
    numeric = numeric && number && std::isfinite(*number);
    if (!numeric) break;
    whole = whole && IsWhole(*number);
    least = std::min(least, *number);
    most = std::max(most, *number);
  }
  if (numeric && least < most) {
    return {{"name", name},
            {"parameterType", whole ? "int" : "double"},
            {"feasibleSpace", {{"min", FormatNumber(least)}, {"max", FormatNumber(most)}}}};
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::set<std::string> seen;
  for (const std::string& text : values) {
    if (seen.insert(text).second) list.push_back(text);
  }
  return {{"name", name}, {"parameterType", "categorical"}, {"feasibleSpace", {{"list", list}}}};
}

StatusOr<db::Batch> MakeBatch(const std::string& ns, Imported& imported, absl::Time now) {
  ASSIGN_OR_RETURN(v1::Experiment experiment, MakeExperiment(ns, imported));
  ASSIGN_OR_RETURN(suggestion::Space space, suggestion::Space::Create(experiment.spec()));
  experiment::SharedHistory history(space, experiment.spec(), /*changes=*/0);
  Builder builder{imported, now, std::move(space), std::move(experiment), std::move(history)};
  int64_t left_out = 0;
  std::string why;
  for (const ImportedTrial& trial : imported.trials) {
    const Status added = builder.Add(trial);
    if (added.ok()) continue;
    if (left_out++ == 0) why = trial.name + ": " + Message(added);
  }
  if (left_out > 0) {
    imported.notes.push_back(absl::StrCat(left_out, " trials are left out (", why, ")"));
  }
  if (builder.batch.trials.empty()) {
    return absl::InvalidArgumentError(imported.source +
                                      " has no trial that has ended with all "
                                      "parameters" +
                                      (why.empty() ? "" : ": " + why));
  }
  if (experiment::HasSeveralObjectives(builder.experiment.spec())) {
    *builder.experiment.mutable_status()->mutable_shirabe()->mutable_front() =
        builder.history.front().ToStatus(builder.experiment, builder.history.history());
  }
  builder.experiment.mutable_spec()->set_max_trial_count(
      static_cast<int32_t>(builder.batch.trials.size()));
  Finish(imported, now, builder.experiment);
  if (!imported.namespace_uid.empty()) {
    builder.experiment.mutable_status()->mutable_shirabe()->set_namespace_uid(
        imported.namespace_uid);
  }
  builder.batch.experiment = experiment::KeyOf(builder.experiment);
  v1::Event made;
  made.set_namespace_(ns);
  made.set_experiment(imported.name);
  made.set_reason("ExperimentImported");
  made.set_message(absl::StrCat(builder.batch.trials.size(), " trials of ", imported.source));
  *made.mutable_actor() = builder.experiment.status().shirabe().created_by();
  *made.mutable_time() = ToProto(now);
  builder.batch.events.push_back(std::move(made));
  builder.batch.put = {std::move(builder.experiment), 0};
  return std::move(builder.batch);
}

}  // namespace shirabe::client
