#include "client/wire_format.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "base/text/json_text.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"

namespace shirabe::client {
namespace {

using Kind = db::Change::Kind;
using End = experiment::Report::End;

constexpr int64_t kAll = -1;  // in the store's queries; on the wire nothing is said

int64_t LimitFrom(int64_t limit) { return limit > 0 ? limit : kAll; }
int64_t LimitTo(int64_t limit) { return std::max<int64_t>(limit, 0); }

}  // namespace

v1::ExperimentRef ToWire(const ExperimentKey& key) {
  v1::ExperimentRef ref;
  ref.set_namespace_(key.ns);
  ref.set_name(key.name);
  return ref;
}
ExperimentKey FromWire(const v1::ExperimentRef& ref) { return {ref.namespace_(), ref.name()}; }

v1::TrialRef ToWire(const TrialKey& key) {
  v1::TrialRef ref;
  ref.set_namespace_(key.experiment.ns);
  ref.set_experiment(key.experiment.name);
  ref.set_number(key.number);
  return ref;
}
TrialKey FromWire(const v1::TrialRef& ref) { return {ExperimentKeyOf(ref), ref.number()}; }

v1::ListTrialsRequest ToWire(const db::TrialQuery& query) {
  v1::ListTrialsRequest request;
  *request.mutable_experiment() = ToWire(query.experiment);
  request.set_live_only(query.live_only);
  request.set_after_number(query.after_number);
  request.set_changed_after(query.changed_after);
  request.set_limit(LimitTo(query.limit));
  return request;
}
db::TrialQuery FromWire(const v1::ListTrialsRequest& request) {
  return {.experiment = FromWire(request.experiment()),
          .live_only = request.live_only(),
          .after_number = request.after_number(),
          .changed_after = request.changed_after(),
          .limit = LimitFrom(request.limit())};
}

v1::ListAttemptsRequest ToWire(const db::AttemptQuery& query) {
  v1::ListAttemptsRequest request;
  *request.mutable_experiment() = ToWire(query.experiment);
  request.set_trial(query.trial);
  request.set_open_only(query.open_only);
  return request;
}
db::AttemptQuery FromWire(const v1::ListAttemptsRequest& request) {
  return {.experiment = FromWire(request.experiment()),
          .trial = request.trial(),
          .open_only = request.open_only()};
}

v1::ListObservationsRequest ToWire(const db::ObservationQuery& query) {
  v1::ListObservationsRequest request;
  *request.mutable_trial() = ToWire(query.trial);
  request.set_metric(query.metric);
  request.set_include_superseded(query.include_superseded);
  return request;
}
db::ObservationQuery FromWire(const v1::ListObservationsRequest& request) {
  return {.trial = FromWire(request.trial()),
          .metric = request.metric(),
          .include_superseded = request.include_superseded()};
}

v1::ListEventsRequest ToWire(const db::EventQuery& query) {
  v1::ListEventsRequest request;
  *request.mutable_experiment() = ToWire(query.experiment);
  request.set_after_id(query.after_id);
  request.set_limit(LimitTo(query.limit));
  return request;
}
db::EventQuery FromWire(const v1::ListEventsRequest& request) {
  return {.experiment = FromWire(request.experiment()),
          .after_id = request.after_id(),
          .limit = LimitFrom(request.limit())};
}

v1::ObservationRecord ToWire(const db::StoredObservation& row) {
  v1::ObservationRecord record;
  record.set_trial(row.trial);
  record.set_attempt(row.attempt);
  record.set_metric(row.metric);
  record.set_step(row.step);
  record.set_value(row.value);
  *record.mutable_time() = ToProto(row.time);
  record.set_implicit_step(row.implicit_step);
  record.set_superseded(row.superseded);
  return record;
}
db::StoredObservation FromWire(v1::ObservationRecord&& record) {
  return {.trial = record.trial(),
          .attempt = record.attempt(),
          .metric = std::move(*record.mutable_metric()),
          .step = record.step(),
          .value = record.value(),
          .time = FromProto(record.time()),
          .implicit_step = record.implicit_step(),
          .superseded = record.superseded()};
}

v1::ChangeRecord ToWire(const db::Change& change) {
  v1::ChangeRecord record;
  switch (change.kind) {
    case Kind::kExperiment: record.set_kind(v1::ChangeRecord::EXPERIMENT); break;
    case Kind::kTrial: record.set_kind(v1::ChangeRecord::TRIAL); break;
    case Kind::kAttempt: record.set_kind(v1::ChangeRecord::ATTEMPT); break;
    case Kind::kIntent: record.set_kind(v1::ChangeRecord::INTENT); break;
    case Kind::kDeleted: record.set_kind(v1::ChangeRecord::DELETED); break;
  }
  record.set_namespace_(change.experiment.ns);
  record.set_experiment(change.experiment.name);
  record.set_trial(change.trial);
  record.set_revision(change.revision);
  return record;
}
db::Change FromWire(const v1::ChangeRecord& record) {
  db::Change change{.experiment = {record.namespace_(), record.experiment()},
                    .trial = record.trial(),
                    .revision = record.revision()};
  switch (record.kind()) {
    case v1::ChangeRecord::TRIAL: change.kind = Kind::kTrial; break;
    case v1::ChangeRecord::ATTEMPT: change.kind = Kind::kAttempt; break;
    case v1::ChangeRecord::INTENT: change.kind = Kind::kIntent; break;
    case v1::ChangeRecord::DELETED: change.kind = Kind::kDeleted; break;
    default: change.kind = Kind::kExperiment; break;
  }
  return change;
}

v1::TellRequest ToWire(const experiment::Report& report) {
  v1::TellRequest request;
  *request.mutable_trial() = ToWire(report.trial);
  request.set_attempt(report.attempt);
  request.set_token(report.token);
  for (const metrics::Observation& point : report.points) {
    v1::TellRequest::Point& wire = *request.add_points();
    wire.set_metric(point.metric);
    wire.set_value(point.value);
    if (!point.implicit_step) wire.set_step(point.step);
    if (point.time != absl::Time()) *wire.mutable_time() = ToProto(point.time);
  }
  request.set_end(report.end == End::kNone        ? v1::TellRequest::NONE
                  : report.end == End::kCompleted ? v1::TellRequest::COMPLETED
                                                  : v1::TellRequest::FAILED);
  request.set_message(report.message);
  request.set_next_for(report.next_for);
  return request;
}
experiment::Report FromWire(const v1::TellRequest& request) {
  experiment::Report report{
      .trial = FromWire(request.trial()), .attempt = request.attempt(), .token = request.token()};
  for (const v1::TellRequest::Point& wire : request.points()) {
    metrics::Observation point{.metric = wire.metric(),
                               .value = wire.value(),
                               .step = wire.step(),
                               .implicit_step = !wire.has_step()};
    if (wire.has_time()) point.time = FromProto(wire.time());
    report.points.push_back(std::move(point));
  }
  report.end = request.end() == v1::TellRequest::COMPLETED ? End::kCompleted
               : request.end() == v1::TellRequest::FAILED  ? End::kFailed
                                                           : End::kNone;
  report.message = request.message();
  report.next_for = request.next_for();
  return report;
}

absl::Duration FromWire(const google::protobuf::Duration& duration) {
  return std::max(absl::ZeroDuration(), FromProto(duration));
}

// An imported experiment on the wire.

namespace {

v1::ImportRequest::Trial ToWire(const ImportedTrial& trial) {
  v1::ImportRequest::Trial wire;
  wire.set_name(trial.name);
  for (const auto& [name, text] : trial.values) {
    v1::ImportRequest::Value& value = *wire.add_values();
    value.set_name(name);
    value.set_text(text);
  }
  for (const ImportedObservation& point : trial.points) {
    v1::ImportRequest::Point& added = *wire.add_points();
    added.set_metric(point.metric);
    added.set_step(point.step);
    added.set_value(point.value);
  }
  wire.set_phase(trial.phase);
  wire.set_message(trial.message);
  wire.set_note(trial.note);
  if (trial.start != absl::InfinitePast()) *wire.mutable_start() = ToProto(trial.start);
  if (trial.end != absl::InfinitePast()) *wire.mutable_end() = ToProto(trial.end);
  return wire;
}

ImportedTrial FromWire(const v1::ImportRequest::Trial& wire) {
  ImportedTrial trial;
  trial.name = wire.name();
  for (const auto& value : wire.values()) trial.values.emplace_back(value.name(), value.text());
  for (const auto& point : wire.points()) {
    trial.points.push_back({point.metric(), point.step(), point.value()});
  }
  trial.phase = wire.phase();
  trial.message = wire.message();
  trial.note = wire.note();
  if (wire.has_start()) trial.start = FromProto(wire.start());
  if (wire.has_end()) trial.end = FromProto(wire.end());
  return trial;
}

StatusOr<nlohmann::ordered_json> ReadJson(const std::string& field, const std::string& text) {
  auto tree = ParseJson<nlohmann::ordered_json>(text, kRequestJson);
  return tree.ok() ? std::move(tree) : Prefix(field, tree.status());
}

}  // namespace

v1::ImportRequest ToWire(const std::string& ns, const Imported& imported) {
  v1::ImportRequest request;
  request.set_namespace_(ns);
  request.set_name(imported.name);
  request.set_source(imported.source);
  request.set_objective(JsonText(imported.objective));
  request.set_parameters(JsonText(imported.parameters));
  if (!imported.further.empty()) request.set_further(JsonText(imported.further));
  request.set_note(imported.note);
  if (!imported.actor.name().empty()) *request.mutable_actor() = imported.actor;
  for (const ImportedTrial& trial : imported.trials) *request.add_trials() = ToWire(trial);
  return request;
}

StatusOr<Imported> FromWire(const v1::ImportRequest& request) {
  Imported imported{.name = request.name(), .source = request.source(), .actor = request.actor()};
  ASSIGN_OR_RETURN(imported.objective, ReadJson("objective", request.objective()));
  ASSIGN_OR_RETURN(imported.parameters, ReadJson("parameters", request.parameters()));
  if (!request.further().empty()) {
    ASSIGN_OR_RETURN(imported.further, ReadJson("further", request.further()));
  }
  imported.note = request.note();
  for (const v1::ImportRequest::Trial& wire : request.trials()) {
    if (!v1::TrialPhase_IsValid(wire.phase()) || !IsTerminal(wire.phase())) {
      return absl::InvalidArgumentError(
          absl::StrCat("trial ", wire.name(), ": phase is none of a trial that has ended"));
    }
    imported.trials.push_back(FromWire(wire));
  }
  return imported;
}

}  // namespace shirabe::client
