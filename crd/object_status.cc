#include "crd/object_status.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/names.h"
#include "base/text/number.h"
#include "crd/resource_kinds.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"
#include "proto/shirabe/v1/crd.pb.h"

namespace shirabe::crd {
namespace {

using kube::Json;
using view::AssignmentsJson;
using view::Shaped;

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

// The current one is last, where Katib's columns and scripts look for it.
view::Json ConditionsJson(const v1::Experiment& experiment) {
  const std::string current = experiment::CurrentCondition(experiment).type();
  view::Json list = view::Json::array();
  view::Json last;
  for (const v1::Condition& condition : experiment.status().conditions()) {
    view::Json tree = Shaped<v1::http::TrialCondition>(condition);
    (condition.type() == current ? last : list.emplace_back()) = std::move(tree);
  }
  if (!last.is_null()) list.push_back(std::move(last));
  return list;
}

view::Json OptimalJson(const v1::ExperimentSpec& spec, const v1::OptimalTrial& optimal) {
  if (optimal.best_trial_name().empty()) return nullptr;
  return Shaped<v1::crd::OptimalTrial>(
      optimal, {{"observation", view::MetricsJson(spec, optimal.observation())}});
}

view::Json RecommendedJson(const v1::ShirabeStatus& status) {
  if (!status.has_recommended_trial()) return nullptr;
  return Shaped<v1::crd::RecommendedTrial>(status.recommended_trial());
}

view::Json FrontJson(const v1::ShirabeStatus& status) {
  return status.has_front() ? Shaped<v1::crd::ResultFront>(status.front()) : view::Json();
}

view::Json NotificationsJson(const v1::ShirabeStatus& status) {
  if (status.notifications().empty()) return nullptr;
  view::Json list = view::Json::array();
  for (const v1::NotificationStatus& one : status.notifications()) {
    list.push_back(Shaped<v1::crd::NotificationStatus>(one));
  }
  return list;
}

view::Json OnSuccessJson(const v1::ShirabeStatus& status) {
  return status.has_on_success() ? Shaped<v1::crd::OnSuccessStatus>(status.on_success())
                                 : view::Json();
}

view::Json CurrencyJson(const v1::Experiment& experiment) {
  if (experiment.status().shirabe().cost() == 0) return nullptr;
  const std::string& currency = experiment.spec().shirabe().budget().currency();
  return currency.empty() ? "USD" : currency;
}

// Of a column: two digits, whatever the amount.
view::Json CostText(const v1::Experiment& experiment) {
  const double cost = experiment.status().shirabe().cost();
  if (cost == 0) return nullptr;
  const std::string currency = CurrencyJson(experiment);
  return (cost < 0.005 ? "<0.01" : absl::StrFormat("%.2f", cost)) + " " + currency;
}

view::Json ActorJson(const v1::Actor& actor) {
  return actor.name().empty() ? view::Json() : Shaped<v1::crd::ActorStatus>(actor);
}

view::Json ExtrasJson(const v1::Experiment& experiment, const ObservedSpec& spec) {
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  const std::string& asked_for = experiment.spec().algorithm().algorithm_name();
  const v1::OptimalTrial& optimal = experiment.status().current_optimal_trial();
  const std::string best = optimal.has_objective() ? FormatNumber(optimal.objective()) : "";
  return Shaped<v1::crd::ExperimentExtras>(
      status, {{"observedGeneration", spec.generation},
               {"best", view::TextOrNull(best)},
               {"algorithm", status.algorithm().empty() ? asked_for : status.algorithm()},
               {"currency", CurrencyJson(experiment)},
               {"costText", CostText(experiment)},
               {"recommendedTrial", RecommendedJson(status)},
               {"uid", experiment.metadata().uid()},
               {"specProblem", view::TextOrNull(spec.problem)},
               {"createdBy", ActorJson(status.created_by())},
               {"changedBy", ActorJson(status.changed_by())},
               {"stoppedBy", ActorJson(status.stopped_by())},
               {"front", FrontJson(status)},
               {"notifications", NotificationsJson(status)},
               {"onSuccess", OnSuccessJson(status)}});
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
  Json tree = Plain(Shaped<v1::crd::ExperimentStatus>(
      status,
      {{"conditions", ConditionsJson(experiment)},
       {"currentOptimalTrial", OptimalJson(experiment.spec(), status.current_optimal_trial())},
       {"lastReconcileTime", nullptr},
       {"shirabe", ExtrasJson(experiment, spec)}}));
  for (const ListField& list : kLists) {
    const auto found = names.find(list.phase);
    if (found == names.end() || found->second.empty()) continue;
    const size_t cut = found->second.size() - std::min(found->second.size(), kMaxNames);
    tree[list.name] = std::vector<std::string>(found->second.begin() + cut, found->second.end());
  }
  return tree;
}

bool OnlySumsDiffer(const Json& before, const Json& after) {
  const auto rest = [](Json status) {
    for (const char* sum :
         {"trials", "trialsSucceeded", "trialsFailed", "trialsKilled", "trialsPending",
          "trialsRunning", "trialsEarlyStopped", "trialMetricsUnavailable"}) {
      status.erase(sum);
    }
    for (const ListField& list : kLists) status.erase(list.name);
    for (const char* sum :
         {"preemptions", "trialsInfeasible", "badMetricLines", "refusedWrites", "seconds", "cost",
          "wastedSeconds", "wastedCost", "onDemandCost", "costText"}) {
      if (status.contains("shirabe")) status["shirabe"].erase(sum);
    }
    return status;
  };
  return rest(before) == rest(after);
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

ObjectJson TrialObject(const view::TrialRenderer& view, const v1::TrialTemplate& from,
                       const v1::Trial& trial, const Json& owner) {
  Json tree = Plain(view(trial));
  // By these Katib's SDK finds the pod, and the container whose log it shows.
  if (from.has_trial_spec() || from.has_config_map()) {
    tree["spec"]["primaryContainerName"] = from.primary_container_name();
  }
  for (const auto& [name, value] : from.primary_pod_labels()) {
    tree["spec"]["primaryPodLabels"][name] = value;
  }
  // What an algorithm calls a trial need not be a label's value in Kubernetes.
  for (const auto& [name, value] : trial.labels()) tree["spec"]["labels"][name] = value;
  tree["metadata"] = MetadataFor(TrialName({ExperimentKeyOf(trial), trial.number()}), owner);
  ObjectJson made{.object = {}, .status = std::move(tree["status"])};
  tree.erase("status");
  made.object = std::move(tree);
  return made;
}

ObjectJson SuggestionObject(const v1::Experiment& experiment,
                            const std::map<int64_t, v1::Trial>& trials, const Json& owner) {
  view::Json suggestions = view::Json::array();
  const size_t left_out = trials.size() - std::min(trials.size(), kMaxNames);
  for (auto it = std::next(trials.begin(), left_out); it != trials.end(); ++it) {
    const v1::Trial& trial = it->second;
    suggestions.push_back({{"name", TrialName({ExperimentKeyOf(trial), trial.number()})},
                           {"parameterAssignments", AssignmentsJson(trial.assignments())}});
  }
  const int64_t count = experiment.status().trials();
  return {.object = {{"apiVersion", kApiVersion},
                     {"kind", "Suggestion"},
                     {"metadata", MetadataFor(NameOf(owner), owner)},
                     {"spec", Plain(Shaped<v1::crd::SuggestionSpec>(experiment.spec(),
                                                                    {{"requests", count}}))}},
          .status = Plain(Shaped<v1::crd::SuggestionStatus>(
              experiment.status(), {{"conditions", ConditionsJson(experiment)},
                                    {"suggestionCount", count},
                                    {"suggestions", std::move(suggestions)},
                                    {"lastReconcileTime", nullptr}}))};
}

}  // namespace shirabe::crd
