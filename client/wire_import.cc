// An imported experiment on the wire.
#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/keys.h"
#include "base/timestamp.h"
#include "client/wire.h"
#include "client/words.h"

namespace shirabe::client {
namespace {

v1::ImportRequest::Trial ToWire(const ImportedTrial& trial) {
  v1::ImportRequest::Trial wire;
  wire.set_name(trial.name);
  for (const auto& [name, text] : trial.values) {
    v1::ImportRequest::Value& value = *wire.add_values();
    value.set_name(name);
    value.set_text(text);
  }
  for (const ImportedPoint& point : trial.points) {
    v1::ImportRequest::Point& added = *wire.add_points();
    added.set_metric(point.metric);
    added.set_step(point.step);
    added.set_value(point.value);
  }
  wire.set_phase(trial.phase);
  wire.set_message(trial.message);
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
  if (wire.has_start()) trial.start = FromProto(wire.start());
  if (wire.has_end()) trial.end = FromProto(wire.end());
  return trial;
}

StatusOr<Json> ReadJson(const std::string& field, const std::string& text) {
  auto tree = ParseJson<Json>(text, kRequestJson);
  return tree.ok() ? std::move(tree) : Prefix(field, tree.status());
}

}  // namespace

v1::ImportRequest ToWire(const Imported& imported) {
  v1::ImportRequest request;
  request.set_name(imported.name);
  request.set_source(imported.source);
  request.set_objective(imported.objective.dump());
  request.set_parameters(imported.parameters.dump());
  for (const ImportedTrial& trial : imported.trials) *request.add_trials() = ToWire(trial);
  return request;
}

StatusOr<Imported> FromWire(const v1::ImportRequest& request) {
  RETURN_IF_ERROR(ValidateKey(ExperimentKey{request.namespace_(), request.name()}));
  Imported imported{.name = request.name(), .source = request.source()};
  ASSIGN_OR_RETURN(imported.objective, ReadJson("objective", request.objective()));
  ASSIGN_OR_RETURN(imported.parameters, ReadJson("parameters", request.parameters()));
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
