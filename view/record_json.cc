#include "view/record_json.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/text/json_text.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "client/wire_format.h"
#include "experiment/spec/message_tree.h"
#include "experiment/spec/trial_result.h"
#include "proto/shirabe/v1/http.pb.h"
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

// Of a trial or an attempt.
Json MetadataJson(const auto& record, std::string name, Json labels) {
  return Shaped<v1::http::Metadata>(
      record, {{"name", std::move(name)},
               {"labels", std::move(labels)},
               {"creationTimestamp", TextOrNull(FormatTime(record.creation_time()))}});
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

Json PositiveOrNull(double number) { return number > 0 ? Json(number) : Json(); }

Json ObjectiveResultsJson(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  if (!experiment::HasSeveralObjectives(spec)) return nullptr;
  Json list = Json::array();
  const auto add = [&](const std::string& metric, v1::ObjectiveType type) {
    Json entry = {{"metricName", metric}, {"type", client::ObjectiveWord(type)}};
    if (const auto value = experiment::CountedValue(spec, trial.observation(), metric))
      entry["value"] = NumberJson(*value);
    list.push_back(std::move(entry));
  };
  add(spec.objective().objective_metric_name(), spec.objective().type());
  for (const v1::AdditionalObjective& objective : spec.shirabe().additional_objectives()) {
    add(objective.metric_name(), objective.type());
  }
  return list;
}

Json ConstraintResultsJson(const v1::ExperimentSpec& spec, const v1::Trial& trial) {
  if (spec.shirabe().constraints_size() == 0) return nullptr;
  Json list = Json::array();
  for (const v1::ResultConstraint& constraint : spec.shirabe().constraints()) {
    Json entry = {{"metricName", constraint.metric_name()}};
    if (constraint.has_min()) entry["min"] = NumberJson(constraint.min());
    if (constraint.has_max()) entry["max"] = NumberJson(constraint.max());
    if (const auto value =
            experiment::CountedValue(spec, trial.observation(), constraint.metric_name())) {
      entry["value"] = NumberJson(*value);
      entry["brokenBy"] = NumberJson(experiment::BrokenBy(constraint, *value));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json TrialExtras(const v1::Experiment& experiment, const v1::Trial& trial) {
  Json objective, step, parent, outputs;
  if (const auto shown = client::ShownObjective(experiment, trial)) {
    objective = NumberJson(shown->value);
    step = shown->step;
  }
  if (trial.parent().trial() > 0) parent = Shaped<v1::http::TrialParent>(trial.parent());
  if (!trial.outputs().digest().empty()) {
    outputs = Shaped<v1::http::TrialOutputs>(trial.outputs());
  }
  const bool ended = client::IsTerminal(trial.phase());
  return Shaped<v1::http::TrialExtras>(
      trial, {{"objective", std::move(objective)},
              {"step", std::move(step)},
              {"parent", std::move(parent)},
              {"outputs", std::move(outputs)},
              {"objectives", ObjectiveResultsJson(experiment.spec(), trial)},
              {"constraints", ConstraintResultsJson(experiment.spec(), trial)},
              {"notBefore", ended ? Json() : TextOrNull(FormatTime(trial.not_before()))}});
}

// A price is printed as the number it is, also where it is whole.
Json PlacementJson(const v1::Placement& placement) {
  const double price = placement.price_per_hour();
  return Shaped<v1::http::Placement>(placement, {{"pricePerHour", PositiveOrNull(price)}});
}

Json AttemptStatusJson(const v1::Attempt& attempt, const std::string& log) {
  Json placements = Json::array();
  for (const v1::Placement& placement : attempt.placements()) {
    placements.push_back(PlacementJson(placement));
  }
  const int64_t from = attempt.resumed_from_trial();
  const TrialKey saved{ExperimentKeyOf(attempt), from > 0 ? from : attempt.trial()};
  return Shaped<v1::http::AttemptStatus>(
      attempt, {{"resumedFrom", attempt.resumed_from_attempt() > 0
                                    ? Json(AttemptName({saved, attempt.resumed_from_attempt()}))
                                    : Json()},
                {"wastedSeconds", PositiveOrNull(attempt.wasted_seconds())},
                {"observations", attempt.rows()},
                {"badMetricLines", attempt.bad_lines() > 0 ? Json(attempt.bad_lines()) : Json()},
                {"placements", std::move(placements)},
                {"log", TextOrNull(log)}});
}

Json ExitJson(const v1::Attempt& attempt) {
  constexpr int kSignalled = 128;
  if (attempt.has_exit_code()) return attempt.exit_code();
  return attempt.signal() > 0 ? Json(kSignalled + attempt.signal()) : Json();
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
  Json metadata =
      MetadataJson(trial, TrialName({ExperimentKeyOf(trial), trial.number()}), std::move(labels));
  Json observation;
  if (trial.observation().metrics_size() > 0)
    observation = MetricsJson(experiment_.spec(), trial.observation());
  Json status =
      Shaped<v1::http::TrialStatus>(trial, {{"conditions", ConditionsJson(trial)},
                                            {"observation", std::move(observation)},
                                            {"shirabe", TrialExtras(experiment_, trial)}});
  return Shaped<v1::http::Trial>(
      trial, {{"metadata", std::move(metadata)},
              {"spec",
               {{"objective", objective_},
                {"parameterAssignments", AssignmentsJson(trial.assignments())}}},
              {"status", std::move(status)}});
}

Json AttemptJson(const v1::Attempt& attempt, const AttemptExtras& extras) {
  const TrialKey trial{ExperimentKeyOf(attempt), attempt.trial()};
  const v1::Placement placement = PlacementOf(attempt);
  const Spending spent = SpendingOf(attempt, extras.now);
  Json metadata = MetadataJson(attempt, AttemptName({trial, attempt.number()}),
                               {{"katib.kubeflow.org/experiment", attempt.experiment()},
                                {"katib.kubeflow.org/trial", TrialName(trial)}});
  return Shaped<v1::http::Attempt>(attempt,
                                   {{"metadata", std::move(metadata)},
                                    {"trial", TrialName(trial)},
                                    {"node", TextOrNull(placement.node())},
                                    {"capacity", TextOrNull(placement.capacity())},
                                    {"start", TextOrNull(FormatTime(attempt.start_time()))},
                                    {"end", TextOrNull(FormatTime(attempt.end_time()))},
                                    {"exitCode", ExitJson(attempt)},
                                    {"cause", TextOrNull(client::CauseWord(attempt.cause()))},
                                    {"seconds", NumberJson(spent.seconds)},
                                    {"cost", NumberJson(spent.cost)},
                                    {"status", AttemptStatusJson(attempt, extras.log)}});
}

Json CheckpointJson(const v1::Checkpoint& checkpoint) {
  return Shaped<v1::http::Checkpoint>(
      checkpoint, {{"trial", TrialName({ExperimentKeyOf(checkpoint), checkpoint.trial()})}});
}

Json FileJson(const v1::FileInfo& file) { return Shaped<v1::http::File>(file); }

Json EventJson(const v1::Event& event) {
  Json trial, actor;
  if (event.trial() > 0) trial = TrialName({ExperimentKeyOf(event), event.trial()});
  if (!event.actor().name().empty()) actor = Shaped<v1::http::Event::Actor>(event.actor());
  return Shaped<v1::http::Event>(event, {{"type", event.warning() ? "Warning" : "Normal"},
                                         {"trial", std::move(trial)},
                                         {"actor", std::move(actor)}});
}

Json ObservationJson(const TrialKey& trial, const db::StoredObservation& row) {
  return Shaped<v1::http::Observation>(client::ToWire(row), {{"trial", TrialName(trial)}});
}

Json CandidateJson(const v1::SuggestReply::Point& point) {
  return Shaped<v1::http::Candidate>(
      point, {{"parameterAssignments", AssignmentsJson(point.assignments())}});
}

Json AssignmentsJson(const google::protobuf::RepeatedPtrField<v1::Assignment>& assignments) {
  Json list = Json::array();
  for (const v1::Assignment& assignment : assignments) {
    list.push_back(experiment::ToTree(assignment));
  }
  return list;
}

// The objective first, as in Katib, whatever the program reported first.
Json MetricsJson(const v1::ExperimentSpec& spec, const v1::Observation& observation) {
  const auto text = [](bool known, double value) {
    return known ? FormatNumber(value) : kUnavailable;
  };
  std::vector<const v1::Metric*> order;
  for (const v1::Metric& metric : observation.metrics()) order.push_back(&metric);
  std::stable_partition(order.begin(), order.end(), [&](const v1::Metric* metric) {
    return metric->name() == spec.objective().objective_metric_name();
  });
  Json metrics = Json::array();
  for (const v1::Metric* metric : order) {
    metrics.push_back({{"name", metric->name()},
                       {"min", text(metric->has_min(), metric->min())},
                       {"max", text(metric->has_max(), metric->max())},
                       {"latest", text(metric->has_latest(), metric->latest())}});
  }
  return {{"metrics", metrics}};
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

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

Json NumberJson(double value) { return experiment::NumberTree(value); }

std::string PrintJson(const Json& tree) { return JsonText(tree, 2) + "\n"; }

std::string PrintJsonLine(const Json& tree) { return JsonText(tree); }

std::string PrintYaml(const Json& tree) { return experiment::YamlOf(tree); }

}  // namespace shirabe::view
