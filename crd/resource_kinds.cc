#include "crd/resource_kinds.h"

#include <string>

#include "absl/strings/ascii.h"
#include "crd/object_rules.h"
#include "proto/shirabe/v1/crd.pb.h"
#include "proto/shirabe/v1/schedule.pb.h"
#include "view/json_schema.h"

namespace shirabe::crd {
namespace {

using google::protobuf::Descriptor;

struct Column {
  const char* name;
  const char* type;
  const char* path;
  const char* description;
  int priority = 0;  // 0 = always shown, 1 = with -o wide
};

struct Kind {
  const char* title;
  const Descriptor* message;
  std::vector<Column> columns;
};

// Katib's two, which stand first: the condition that was set last.
const Column kType{"Type", "string", ".status.conditions[-1:].type", "the current condition"};
const Column kStatus{"Status", "string", ".status.conditions[-1:].status", "whether it holds"};
const Column kAge{"Age", "date", ".metadata.creationTimestamp", "since it was created"};

Kind ExperimentKind() {
  return {"Experiment",
          v1::crd::Experiment::descriptor(),
          {kType,
           kStatus,
           {"Best", "string", ".status.shirabe.best", "the best objective so far"},
           {"Trials", "integer", ".status.trials", "trials created so far"},
           {"Running", "integer", ".status.trialsRunning", "trials that run"},
           {"Failed", "integer", ".status.trialsFailed", "trials that failed"},
           {"Preempted", "integer", ".status.shirabe.preemptions",
            "attempts lost to the platform; no failures"},
           {"Cost", "string", ".status.shirabe.costText", "of all attempts that have ended"},
           {"Best Trial", "string", ".status.currentOptimalTrial.bestTrialName", "its name", 1},
           {"Waiting", "string", ".status.shirabe.waiting", "why nothing starts", 1},
           kAge}};
}

Kind SuggestionKind() {
  return {"Suggestion",
          v1::crd::Suggestion::descriptor(),
          {kType,
           kStatus,
           {"Requested", "integer", ".spec.requests", "points asked for"},
           {"Assigned", "integer", ".status.suggestionCount", "points given"},
           {"Algorithm", "string", ".spec.algorithm.algorithmName", "how it searches", 1},
           kAge}};
}

Kind TrialKind() {
  return {"Trial",
          v1::crd::Trial::descriptor(),
          {kType,
           kStatus,
           {"Objective", "string", ".status.shirabe.objective", "its result"},
           {"Attempts", "integer", ".status.shirabe.attempts", "executions so far"},
           {"Preempted", "integer", ".status.shirabe.preemptions", "lost to the platform"},
           {"Step", "integer", ".status.shirabe.lastStep", "the greatest observed", 1},
           {"Waiting", "string", ".status.shirabe.waiting", "why it is not running", 1},
           kAge}};
}

Kind ScheduleKind() {
  return {"ScheduledExperiment",
          v1::ScheduledExperiment::descriptor(),
          {{"Schedule", "string", ".spec.schedule", "the words of cron"},
           {"Time Zone", "string", ".spec.timeZone", "whose local time they mean"},
           {"Suspend", "boolean", ".spec.suspend", "whether it starts none for now"},
           {"Last Schedule", "date", ".status.lastScheduleTime", "since the last start"},
           {"Last Experiment", "string", ".status.lastExperiment", "its name", 1},
           {"Next", "string", ".status.nextScheduleTime", "when the next is due", 1},
           {"Waiting", "string", ".status.waiting", "why a start that is due is not made", 1},
           kAge}};
}

OrderedJson ColumnJson(const Column& column) {
  OrderedJson json = {{"name", column.name},
                      {"type", column.type},
                      {"jsonPath", column.path},
                      {"description", column.description}};
  if (column.priority > 0) json["priority"] = column.priority;
  return json;
}

std::string LowerCase(const std::string& title) { return absl::AsciiStrToLower(title); }

// People write experiments and their schedules; the rest is ours. The status is ours everywhere.
OrderedJson SchemaOf(const Kind& kind) {
  const bool scheduled = kind.message == v1::ScheduledExperiment::descriptor();
  const bool ours = !scheduled && kind.message != v1::crd::Experiment::descriptor();
  OrderedJson schema = {
      {"type", "object"},
      {"description", scheduled
                          ? "an experiment that is started again and again, in CronJob's words"
                          : "a Katib-compatible " + LowerCase(kind.title) + " of Shirabe"},
      {"properties",
       {{"apiVersion", {{"type", "string"}}},
        {"kind", {{"type", "string"}}},
        {"metadata", {{"type", "object"}}}}}};
  const auto reported = view::SchemaOf(*kind.message, view::SchemaForm::kReported);
  const auto applied = view::SchemaOf(*kind.message, view::SchemaForm::kApplied);
  OrderedJson& properties = schema["properties"];
  properties["spec"] = (ours ? reported : applied)["properties"]["spec"];
  properties["status"] = reported["properties"]["status"];
  if (!ours) {
    schema["required"] = {"spec"};
    scheduled ? AddScheduleRules(schema) : AddExperimentRules(schema);
  }
  // Beside the spec as well, so that `sepc:` is found, and found out.
  schema["x-kubernetes-preserve-unknown-fields"] = true;
  return schema;
}

Definition DefinitionOf(const Kind& kind) {
  const std::string title = kind.title;
  const std::string singular = LowerCase(title);
  const std::string plural = singular + "s";
  OrderedJson columns = OrderedJson::array();
  for (const Column& column : kind.columns) columns.push_back(ColumnJson(column));
  const OrderedJson names = {{"kind", title},
                             {"listKind", title + "List"},
                             {"plural", plural},
                             {"singular", singular},
                             {"categories", {"all", "kubeflow", "katib"}}};
  const OrderedJson version = {{"name", "v1beta1"},
                               {"served", true},
                               {"storage", true},
                               {"subresources", {{"status", OrderedJson::object()}}},
                               {"additionalPrinterColumns", columns},
                               {"schema", {{"openAPIV3Schema", SchemaOf(kind)}}}};
  return {plural,
          {{"apiVersion", "apiextensions.k8s.io/v1"},
           {"kind", "CustomResourceDefinition"},
           {"metadata",
            {{"name", plural + ".kubeflow.org"},
             {"labels", {{"app.kubernetes.io/name", "shirabe"}, {kPartOfLabel, kPartOf}}}}},
           {"spec",
            {{"group", "kubeflow.org"},
             {"scope", "Namespaced"},
             {"names", names},
             {"versions", OrderedJson::array({version})}}}}};
}

}  // namespace

std::vector<Definition> Definitions() {
  return {DefinitionOf(ExperimentKind()), DefinitionOf(SuggestionKind()), DefinitionOf(TrialKind()),
          DefinitionOf(ScheduleKind())};
}

using kube::Json;

kube::Resource Experiments() { return {"kubeflow.org", "v1beta1", "experiments", "Experiment"}; }
kube::Resource ScheduledExperiments() {
  return {"kubeflow.org", "v1beta1", "scheduledexperiments", "ScheduledExperiment"};
}
kube::Resource Suggestions() { return {"kubeflow.org", "v1beta1", "suggestions", "Suggestion"}; }
kube::Resource Trials() { return {"kubeflow.org", "v1beta1", "trials", "Trial"}; }
kube::Resource Events() { return {"", "v1", "events", "Event"}; }
kube::Resource ConfigMaps() { return {"", "v1", "configmaps", "ConfigMap"}; }
kube::Resource DefinitionsResource() {
  return {"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition",
          /*namespaced=*/false};
}

std::string LabelOf(const Json& object, const char* label) {
  return Text(object, {"metadata", "labels", label});
}
ExperimentKey KeyOfObject(const Json& object) { return {NamespaceOf(object), NameOf(object)}; }

std::string MicroTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

StatusOr<Ownership> OwnerOfDefinitions(kube::Client& kube) {
  const auto definition = kube.Get({DefinitionsResource(), "", "experiments.kubeflow.org"});
  if (absl::IsNotFound(definition.status())) return Ownership::kAbsent;
  RETURN_IF_ERROR(definition.status());
  return LabelOf(*definition, kPartOfLabel) == kPartOf ? Ownership::kOurs : Ownership::kForeign;
}

}  // namespace shirabe::crd
