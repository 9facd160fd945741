#include "crd/object_status.h"

#include <algorithm>
#include <utility>

#include "base/names.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "crd/resource_kinds.h"
#include "experiment/conditions.h"
#include "experiment/spec/message_tree.h"
#include "experiment/submission.h"
#include "trial/trial_template.h"

namespace shirabe::crd {
namespace {

using kube::Json;

constexpr char kUnavailable[] = "unavailable";  // Katib's word for a value that was never seen

struct ListField {
  v1::TrialPhase phase;
  const char* name;
};
constexpr ListField kLists[] = {
    {v1::TRIAL_PENDING, "pendingTrialList"},
    {v1::TRIAL_RUNNING, "runningTrialList"},
    {v1::TRIAL_SUCCEEDED, "succeededTrialList"},
    {v1::TRIAL_FAILED, "failedTrialList"},
    {v1::TRIAL_KILLED, "killedTrialList"},
    {v1::TRIAL_EARLY_STOPPED, "earlyStoppedTrialList"},
    {v1::TRIAL_METRICS_UNAVAILABLE, "metricsUnavailableTrialList"},
};

void PutTime(Json& tree, const char* key, const google::protobuf::Timestamp& time) {
  if (std::string text = FormatTime(time); !text.empty()) tree[key] = std::move(text);
}
void PutText(Json& tree, const char* key, const std::string& text) {
  if (!text.empty()) tree[key] = text;
}
void PutNumber(Json& tree, const char* key, double number) {
  if (number != 0) tree[key] = number;
}

Json AssignmentsJson(const google::protobuf::RepeatedPtrField<v1::Assignment>& assignments) {
  Json list = Json::array();
  for (const v1::Assignment& assignment : assignments) {
    list.push_back({{"name", assignment.name()}, {"value", trial::FormatAssignment(assignment)}});
  }
  return list;
}

Json ConditionJson(const v1::Condition& condition) {
  Json tree = {{"type", condition.type()},
               {"status", condition.status()},
               {"reason", condition.reason()},
               {"message", condition.message()}};
  PutTime(tree, "lastUpdateTime", condition.last_update_time());
  PutTime(tree, "lastTransitionTime", condition.last_transition_time());
  return tree;
}

// The current one is last, where Katib's columns and scripts look for it.
Json ConditionsJson(const v1::Experiment& experiment) {
  const std::string current = experiment::CurrentCondition(experiment).type();
  Json list = Json::array();
  Json last;
  for (const v1::Condition& condition : experiment.status().conditions()) {
    Json tree = ConditionJson(condition);
    if (condition.type() == current) {
      last = std::move(tree);
    } else {
      list.push_back(std::move(tree));
    }
  }
  if (!last.is_null()) list.push_back(std::move(last));
  return list;
}

Json ObservationJson(const v1::Observation& observation) {
  const auto text = [](bool known, double value) {
    return known ? FormatNumber(value) : std::string(kUnavailable);
  };
  Json metrics = Json::array();
  for (const v1::Metric& metric : observation.metrics()) {
    metrics.push_back({{"name", metric.name()},
                       {"min", text(metric.has_min(), metric.min())},
                       {"max", text(metric.has_max(), metric.max())},
                       {"latest", text(metric.has_latest(), metric.latest())}});
  }
  return {{"metrics", metrics}};
}

Json OptimalJson(const v1::OptimalTrial& optimal) {
  return {{"bestTrialName", optimal.best_trial_name()},
          {"parameterAssignments", AssignmentsJson(optimal.parameter_assignments())},
          {"observation", ObservationJson(optimal.observation())}};
}

Json RecommendedJson(const v1::RecommendedTrial& recommended) {
  return {{"trialName", recommended.trial_name()},
          {"parameterAssignments", AssignmentsJson(recommended.parameter_assignments())},
          {"predicted", recommended.predicted()},
          {"deviation", recommended.deviation()},
          {"reason", recommended.reason()}};
}

void PutMoney(Json& tree, const v1::Experiment& experiment) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  PutNumber(tree, "seconds", status.seconds());
  PutNumber(tree, "cost", status.cost());
  PutNumber(tree, "wastedSeconds", status.wasted_seconds());
  PutNumber(tree, "wastedCost", status.wasted_cost());
  PutNumber(tree, "onDemandCost", status.on_demand_cost());
  if (status.cost() == 0) return;
  const std::string& currency = experiment.spec().shirabe().budget().currency();
  tree["currency"] = currency.empty() ? "USD" : currency;
}

void PutActor(Json& tree, const char* key, const v1::Actor& actor) {
  if (actor.name().empty()) return;
  tree[key] = {{"name", actor.name()}, {"door", actor.door()}};
  PutTime(tree[key], "time", actor.time());
}

Json ExtrasJson(const v1::Experiment& experiment, const ObservedSpec& spec) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  const std::string& asked_for = experiment.spec().algorithm().algorithm_name();
  Json tree = {{"observedGeneration", spec.generation},
               {"uid", experiment.metadata().uid()},
               {"algorithm", status.algorithm().empty() ? asked_for : status.algorithm()},
               {"preemptions", status.preemptions()}};
  const v1::OptimalTrial& optimal = experiment.status().current_optimal_trial();
  if (optimal.has_objective()) tree["best"] = FormatNumber(optimal.objective());
  PutText(tree, "specProblem", spec.problem);
  PutText(tree, "waiting", status.waiting());
  for (const auto& [key, holds] : {std::pair{"paused", status.paused()},
                                   {"exhausted", status.exhausted()},
                                   {"stopping", status.stopping()}}) {
    if (holds) tree[key] = true;
  }
  for (const auto& [key, count] : {std::pair{"trialsInfeasible", status.trials_infeasible()},
                                   {"badMetricLines", status.bad_metric_lines()},
                                   {"refusedWrites", status.refused_writes()}}) {
    if (count != 0) tree[key] = count;
  }
  PutMoney(tree, experiment);
  PutActor(tree, "createdBy", status.created_by());
  PutActor(tree, "changedBy", status.changed_by());
  PutActor(tree, "stoppedBy", status.stopped_by());
  if (status.has_recommended_trial()) {
    tree["recommendedTrial"] = RecommendedJson(status.recommended_trial());
  }
  return tree;
}

void PutCounts(Json& tree, const v1::ExperimentStatus& status) {
  tree["trials"] = status.trials();
  tree["trialsSucceeded"] = status.trials_succeeded();
  tree["trialsFailed"] = status.trials_failed();
  tree["trialsKilled"] = status.trials_killed();
  tree["trialsPending"] = status.trials_pending();
  tree["trialsRunning"] = status.trials_running();
  tree["trialsEarlyStopped"] = status.trials_early_stopped();
  tree["trialMetricsUnavailable"] = status.trial_metrics_unavailable();
}

Json MetadataFor(const std::string& name, const Json& owner) {
  return {{"name", name},
          {"namespace", NamespaceOf(owner)},
          {"labels", {{kExperimentLabel, NameOf(owner)}, {kManagedByLabel, kManagedBy}}},
          {"ownerReferences",
           {{{"apiVersion", kApiVersion},
             {"kind", "Experiment"},
             {"name", NameOf(owner)},
             {"uid", UidOf(owner)},
             {"controller", true}}}}};
}

}  // namespace

Json Plain(const view::Json& tree) { return Json(tree); }

Json ExperimentStatusJson(const v1::Experiment& experiment, const NamesByPhase& names,
                          const ObservedSpec& spec) {
  const v1::ExperimentStatus& status = experiment.status();
  Json tree = {{"conditions", ConditionsJson(experiment)}};
  PutTime(tree, "startTime", status.start_time());
  PutTime(tree, "completionTime", status.completion_time());
  PutCounts(tree, status);
  if (!status.current_optimal_trial().best_trial_name().empty()) {
    tree["currentOptimalTrial"] = OptimalJson(status.current_optimal_trial());
  }
  for (const ListField& list : kLists) {
    const auto found = names.find(list.phase);
    if (found == names.end() || found->second.empty()) continue;
    const size_t cut = found->second.size() - std::min(found->second.size(), kMaxNames);
    tree[list.name] = std::vector<std::string>(found->second.begin() + cut, found->second.end());
  }
  tree["shirabe"] = ExtrasJson(experiment, spec);
  return tree;
}

Json PendingStatusJson(const PendingObject& unrecorded) {
  const auto condition = [&](const char* type, const std::string& reason,
                             const std::string& message) {
    return Json{{"type", type},
                {"status", "True"},
                {"reason", reason},
                {"message", message},
                {"lastUpdateTime", unrecorded.since},
                {"lastTransitionTime", unrecorded.since}};
  };
  Json conditions = Json::array();
  Json extras = {{"observedGeneration", unrecorded.generation}};
  if (unrecorded.failed) {
    conditions.push_back(condition("Failed", unrecorded.reason, unrecorded.message));
    extras["specProblem"] = unrecorded.message;
  } else {
    conditions.push_back(condition("Created", unrecorded.reason, unrecorded.message));
    extras["waiting"] = unrecorded.message;
  }
  return {{"conditions", conditions}, {"shirabe", extras}};
}

ObjectJson TrialObject(const view::TrialRenderer& view, const v1::Trial& trial, const Json& owner) {
  Json tree = Plain(view(trial));
  // What an algorithm calls a trial need not be a label's value in Kubernetes.
  for (const auto& [name, value] : trial.labels()) tree["spec"]["labels"][name] = value;
  tree["metadata"] = MetadataFor(TrialName({ExperimentKeyOf(trial), trial.number()}), owner);
  ObjectJson made{.object = {}, .status = std::move(tree["status"])};
  tree.erase("status");
  made.object = std::move(tree);
  return made;
}

ObjectJson SuggestionObject(const v1::Experiment& experiment, const std::vector<v1::Trial>& live,
                            const Json& owner) {
  const v1::ExperimentStatus& from = experiment.status();
  Json spec = {{"algorithm", Plain(experiment::ToTree(experiment.spec().algorithm()))},
               {"requests", from.trials()}};
  if (experiment.spec().has_early_stopping()) {
    spec["earlyStopping"] = Plain(experiment::ToTree(experiment.spec().early_stopping()));
  }
  const Json whole = Plain(experiment::ToTree(experiment.spec()));
  if (whole.contains("resumePolicy")) spec["resumePolicy"] = whole["resumePolicy"];
  Json status = {{"conditions", ConditionsJson(experiment)}, {"suggestionCount", from.trials()}};
  PutTime(status, "startTime", from.start_time());
  PutTime(status, "completionTime", from.completion_time());
  Json suggestions = Json::array();
  for (size_t i = live.size() - std::min(live.size(), kMaxNames); i < live.size(); ++i) {
    suggestions.push_back({{"name", TrialName({ExperimentKeyOf(live[i]), live[i].number()})},
                           {"parameterAssignments", AssignmentsJson(live[i].assignments())}});
  }
  status["suggestions"] = suggestions;
  return {.object = {{"apiVersion", kApiVersion},
                     {"kind", "Suggestion"},
                     {"metadata", MetadataFor(NameOf(owner), owner)},
                     {"spec", spec}},
          .status = status};
}

}  // namespace shirabe::crd
