#include "view/record_json.h"

#include <cmath>
#include <map>
#include <utility>

#include "base/text/number.h"
#include "base/timestamp.h"
#include "client/enum_words.h"
#include "experiment/spec/message_tree.h"
#include "trial/trial_template.h"
#include "view/record_rows.h"
#include "view/spending.h"

namespace shirabe::view {
namespace {

using google::protobuf::Timestamp;

// Katib's word for a value of a metric that was never seen.
constexpr char kUnavailable[] = "unavailable";

void PutTime(Json& tree, const char* key, const Timestamp& time) {
  if (std::string text = FormatTime(time); !text.empty()) tree[key] = std::move(text);
}

void PutText(Json& tree, const char* key, const std::string& text) {
  if (!text.empty()) tree[key] = text;
}

void PutCount(Json& tree, const char* key, int64_t count) {
  if (count != 0) tree[key] = count;
}

void PutNumber(Json& tree, const char* key, double number) {
  if (number != 0) tree[key] = NumberJson(number);
}

Json AssignmentsJson(const auto& assignments) {
  Json list = Json::array();
  for (const v1::Assignment& assignment : assignments) {
    list.push_back({{"name", assignment.name()}, {"value", trial::FormatAssignment(assignment)}});
  }
  return list;
}

struct ConditionText {
  std::string type;
  std::string reason;
  std::string message;
  bool holds = true;
};

Json ConditionJson(const ConditionText& text, const Timestamp& time) {
  Json tree = {{"type", text.type},
               {"status", text.holds ? "True" : "False"},
               {"reason", text.reason},
               {"message", text.message}};
  PutTime(tree, "lastUpdateTime", time);
  PutTime(tree, "lastTransitionTime", time);
  return tree;
}

Json ConditionsJson(const v1::Trial& trial) {
  Json list = Json::array();
  list.push_back(
      ConditionJson({.type = "Created", .reason = "TrialCreated", .message = "Trial is created"},
                    trial.creation_time()));
  const bool ended = client::IsTerminal(trial.phase());
  if (trial.has_start_time()) {
    list.push_back(ConditionJson({.type = "Running",
                                  .reason = "TrialRunning",
                                  .message = "Trial is running",
                                  .holds = trial.phase() == v1::TRIAL_RUNNING},
                                 ended ? trial.completion_time() : trial.start_time()));
  }
  if (!ended) return list;
  const std::string word = client::PhaseWord(trial.phase());
  list.push_back(ConditionJson(
      {.type = word,
       .reason = trial.reason().empty() ? "Trial" + word : trial.reason(),
       .message = trial.message().empty() ? "Trial has ended: " + word : trial.message()},
      trial.completion_time()));
  return list;
}

std::string MetricText(bool known, double value) {
  return known ? FormatNumber(value) : kUnavailable;
}

Json ObservationOf(const v1::Observation& observation) {
  Json metrics = Json::array();
  for (const v1::Metric& metric : observation.metrics()) {
    metrics.push_back({{"name", metric.name()},
                       {"min", MetricText(metric.has_min(), metric.min())},
                       {"max", MetricText(metric.has_max(), metric.max())},
                       {"latest", MetricText(metric.has_latest(), metric.latest())}});
  }
  return {{"metrics", metrics}};
}

Json TrialExtras(const v1::Experiment& experiment, const v1::Trial& trial) {
  Json tree = {{"number", trial.number()}, {"phase", client::PhaseWord(trial.phase())}};
  if (const auto objective = client::ShownObjective(experiment, trial)) {
    tree["objective"] = NumberJson(objective->value);
    tree["step"] = objective->step;
  }
  PutCount(tree, "lastStep", trial.last_step());
  PutCount(tree, "attempts", trial.attempts());
  PutCount(tree, "failures", trial.failures());
  PutCount(tree, "preemptions", trial.preemptions());
  if (trial.infeasible()) tree["infeasible"] = true;
  if (trial.parent().trial() > 0) {
    tree["parent"] = {{"trial", trial.parent().trial()}, {"step", trial.parent().step()}};
  }
  PutNumber(tree, "seconds", trial.seconds());
  PutNumber(tree, "cost", trial.cost());
  PutNumber(tree, "wastedSeconds", trial.wasted_seconds());
  PutNumber(tree, "wastedCost", trial.wasted_cost());
  PutNumber(tree, "onDemandCost", trial.on_demand_cost());
  PutText(tree, "explanation", trial.explanation());
  PutText(tree, "waiting", trial.waiting());
  if (!client::IsTerminal(trial.phase())) PutTime(tree, "notBefore", trial.not_before());
  return tree;
}

Json PlacementJson(const v1::Placement& placement) {
  Json tree = Json::object();
  PutText(tree, "node", placement.node());
  PutText(tree, "pool", placement.pool());
  PutText(tree, "capacity", placement.capacity());
  if (placement.price_per_hour() > 0) tree["pricePerHour"] = placement.price_per_hour();
  PutNumber(tree, "onDemandPricePerHour", placement.on_demand_price_per_hour());
  PutCount(tree, "pid", placement.pid());
  PutText(tree, "devices", placement.devices());
  PutTime(tree, "startTime", placement.start_time());
  PutTime(tree, "endTime", placement.end_time());
  return tree;
}

Json AttemptStatusJson(const v1::Attempt& attempt) {
  Json tree = {{"state", client::AttemptStateWord(attempt.state())}};
  PutText(tree, "cause", client::CauseWord(attempt.cause()));
  if (attempt.has_exit_code()) tree["exitCode"] = attempt.exit_code();
  PutCount(tree, "signal", attempt.signal());
  PutText(tree, "message", attempt.message());
  PutTime(tree, "startTime", attempt.start_time());
  PutTime(tree, "endTime", attempt.end_time());
  tree["resumedFromStep"] = attempt.resumed_from_step();
  tree["stepsGained"] = attempt.steps_gained();
  tree["stepsRedone"] = attempt.steps_redone();
  if (attempt.resumed_from_attempt() > 0) {
    const int64_t from = attempt.resumed_from_trial();
    tree["resumedFrom"] =
        AttemptName({{ExperimentKeyOf(attempt), from > 0 ? from : attempt.trial()},
                     attempt.resumed_from_attempt()});
  }
  if (attempt.wasted_seconds() > 0) tree["wastedSeconds"] = attempt.wasted_seconds();
  tree["observations"] = attempt.rows();
  PutCount(tree, "badMetricLines", attempt.bad_lines());
  tree["placements"] = Json::array();
  for (const v1::Placement& placement : attempt.placements()) {
    tree["placements"].push_back(PlacementJson(placement));
  }
  return tree;
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json ExitJson(const v1::Attempt& attempt) {
  constexpr int kSignalled = 128;
  if (attempt.has_exit_code()) return attempt.exit_code();
  return attempt.signal() > 0 ? Json(kSignalled + attempt.signal()) : Json();
}

void PutLedger(Json& tree, const v1::Attempt& attempt, const Spending& spent) {
  const v1::Placement placement = PlacementOf(attempt);
  tree["trial"] = TrialName({ExperimentKeyOf(attempt), attempt.trial()});
  tree["number"] = attempt.number();
  tree["node"] = TextOrNull(placement.node());
  tree["capacity"] = TextOrNull(placement.capacity());
  tree["start"] = TextOrNull(FormatTime(attempt.start_time()));
  tree["end"] = TextOrNull(FormatTime(attempt.end_time()));
  tree["exitCode"] = ExitJson(attempt);
  tree["cause"] = TextOrNull(client::CauseWord(attempt.cause()));
  tree["resumedFromStep"] = attempt.resumed_from_step();
  tree["stepsGained"] = attempt.steps_gained();
  tree["stepsRedone"] = attempt.steps_redone();
  tree["seconds"] = NumberJson(spent.seconds);
  tree["cost"] = NumberJson(spent.cost);
}

// Every line but the first further to the right; empty ones stay empty.
std::string Indented(const std::string& text, size_t by) {
  const std::string blanks(by, ' ');
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    const bool more = text[i] == '\n' && i + 1 < text.size() && text[i + 1] != '\n';
    if (more) out += blanks;
  }
  return out;
}

}  // namespace

Json ExperimentJson(const v1::Experiment& experiment) { return experiment::ToTree(experiment); }

TrialRenderer::TrialRenderer(const v1::Experiment& experiment)
    : experiment_(experiment), objective_(experiment::ToTree(experiment.spec().objective())) {}

Json TrialRenderer::operator()(const v1::Trial& trial) const {
  Json labels = {{"katib.kubeflow.org/experiment", trial.experiment()}};
  const std::map<std::string, std::string> sorted(trial.labels().begin(), trial.labels().end());
  for (const auto& [name, value] : sorted) labels[name] = value;
  Json metadata = {{"name", TrialName({ExperimentKeyOf(trial), trial.number()})},
                   {"namespace", trial.namespace_()},
                   {"labels", std::move(labels)}};
  PutTime(metadata, "creationTimestamp", trial.creation_time());
  Json status = Json::object();
  PutTime(status, "startTime", trial.start_time());
  PutTime(status, "completionTime", trial.completion_time());
  status["conditions"] = ConditionsJson(trial);
  if (trial.observation().metrics_size() > 0) {
    status["observation"] = ObservationOf(trial.observation());
  }
  status["shirabe"] = TrialExtras(experiment_, trial);
  return {
      {"apiVersion", "kubeflow.org/v1beta1"},
      {"kind", "Trial"},
      {"metadata", std::move(metadata)},
      {"spec",
       {{"objective", objective_}, {"parameterAssignments", AssignmentsJson(trial.assignments())}}},
      {"status", std::move(status)}};
}

Json AttemptJson(const v1::Attempt& attempt, const AttemptExtras& extras) {
  const TrialKey trial{ExperimentKeyOf(attempt), attempt.trial()};
  Json metadata = {{"name", AttemptName({trial, attempt.number()})},
                   {"namespace", attempt.namespace_()},
                   {"labels",
                    {{"katib.kubeflow.org/experiment", attempt.experiment()},
                     {"katib.kubeflow.org/trial", TrialName(trial)}}}};
  PutTime(metadata, "creationTimestamp", attempt.creation_time());
  Json status = AttemptStatusJson(attempt);
  PutText(status, "log", extras.log);
  Json tree = {{"apiVersion", "shirabe/v1"}, {"kind", "Attempt"}};
  tree["metadata"] = std::move(metadata);
  PutLedger(tree, attempt, SpendingOf(attempt, extras.now));
  tree["status"] = std::move(status);
  return tree;
}

Json CheckpointJson(const v1::Checkpoint& checkpoint) {
  Json tree = {{"trial", TrialName({ExperimentKeyOf(checkpoint), checkpoint.trial()})},
               {"attempt", checkpoint.attempt()},
               {"step", checkpoint.step()},
               {"bytes", checkpoint.bytes()},
               {"digest", checkpoint.digest()}};
  PutTime(tree, "time", checkpoint.time());
  if (checkpoint.has_objective()) tree["objective"] = NumberJson(checkpoint.objective());
  PutText(tree, "location", checkpoint.location());
  PutText(tree, "gone", checkpoint.gone());
  return tree;
}

Json EventJson(const v1::Event& event) {
  Json tree = {{"apiVersion", "shirabe/v1"},
               {"kind", "Event"},
               {"type", event.warning() ? "Warning" : "Normal"},
               {"reason", event.reason()},
               {"message", event.message()},
               {"namespace", event.namespace_()},
               {"experiment", event.experiment()}};
  if (event.trial() > 0) tree["trial"] = TrialName({ExperimentKeyOf(event), event.trial()});
  PutCount(tree, "attempt", event.attempt());
  PutTime(tree, "time", event.time());
  if (!event.actor().name().empty()) {
    tree["actor"] = {{"name", event.actor().name()}, {"door", event.actor().door()}};
  }
  return tree;
}

Json ObservationJson(const TrialKey& trial, const db::StoredObservation& row) {
  Json tree = {{"trial", TrialName(trial)},
               {"attempt", row.attempt},
               {"metric", row.metric},
               {"step", row.step},
               {"value", NumberJson(row.value)}};
  PutTime(tree, "time", ToProto(row.time));
  if (row.implicit_step) tree["implicitStep"] = true;
  if (row.superseded) tree["superseded"] = true;
  return tree;
}

Json CandidateJson(const client::Candidate& candidate) {
  Json tree = {{"parameterAssignments", AssignmentsJson(candidate.assignments)}};
  PutText(tree, "explanation", candidate.explanation);
  return tree;
}

std::string ListWriter::Begin() const {
  return yaml_ ? "apiVersion: v1\nkind: List\nitems:"
               : "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",\n  \"items\": [";
}

std::string ListWriter::Item(const Json& item) {
  const bool first = std::exchange(empty_, false);
  if (yaml_) return (first ? "\n- " : "- ") + Indented(PrintYaml(item), 2);
  std::string text = PrintJson(item);
  text.pop_back();
  return (first ? "\n    " : ",\n    ") + Indented(text, 4);
}

std::string ListWriter::End() const {
  if (yaml_) return empty_ ? " []\n" : "";
  return empty_ ? "]\n}\n" : "\n  ]\n}\n";
}

Json TypedValue(const v1::Assignment& assignment) {
  switch (assignment.value_case()) {
    case v1::Assignment::kNumber: return NumberJson(assignment.number());
    case v1::Assignment::kInteger: return assignment.integer();
    case v1::Assignment::kCategory: return assignment.category();
    default: return nullptr;
  }
}

Json NumberJson(double value) {
  if (!std::isfinite(value)) return FormatNumber(value);
  const bool whole = value == std::floor(value) && std::abs(value) <= 0x1p53;
  if (whole && !(value == 0 && std::signbit(value))) return static_cast<int64_t>(value);
  return value;
}

std::string PrintJson(const Json& tree) {
  return tree.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string PrintJsonLine(const Json& tree) {
  return tree.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string PrintYaml(const Json& tree) { return experiment::YamlOf(tree); }

}  // namespace shirabe::view
