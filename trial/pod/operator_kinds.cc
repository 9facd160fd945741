#include "trial/pod/operator_kinds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace shirabe::trial {
namespace {

constexpr char kJobOfRuntime[] = "jobset.sigs.k8s.io/replicatedjob-name";
constexpr char kJobSetLabel[] = "jobset.sigs.k8s.io/jobset-name";
constexpr char kPatcher[] = "shirabe.dev/controller";

bool IsOfKind(const Json& object, const char* group, const char* kind) {
  return Text(object, {"kind"}) == kind &&
         absl::StartsWith(Text(object, {"apiVersion"}), absl::StrCat(group, "/"));
}

bool IsWorkflow(const Json& object) { return IsOfKind(object, "argoproj.io", "Workflow"); }

bool IsOfTekton(const Json& object) {
  return IsOfKind(object, "tekton.dev", "PipelineRun") || IsOfKind(object, "tekton.dev", "TaskRun");
}

void Merge(const Json& from, const char* field, Json& to) {
  if (!At(from, field).is_object()) return;
  Json& into = ObjectIn(to, field);
  for (const auto& [key, value] : from[field].items()) into[key] = value;
}

// The operator refuses a patch for a job that the runtime does not have, and the runtime is not
// known here; what the primary pod is found by names one.
void PatchRuntime(const Json& pod, const AttemptRecipe& recipe, Json& spec) {
  const auto job = recipe.primary_labels.find(kJobOfRuntime);
  if (job == recipe.primary_labels.end()) return;
  const Json replicated = {{"name", job->second}, {"template", {{"spec", {{"template", pod}}}}}};
  const Json jobs = {{"replicatedJobs", Json::array({replicated})}};
  ListIn(spec, "runtimePatches")
      .push_back(
          {{"manager", kPatcher}, {"trainingRuntimeSpec", {{"template", {{"spec", jobs}}}}}});
}

// v1 has it of all tasks; before, and in a TaskRun, it stands in spec itself.
Json& PodTemplateOf(Json& object) {
  Json& spec = ObjectIn(object, "spec");
  const bool tasks =
      Text(object, {"kind"}) == "PipelineRun" && Text(object, {"apiVersion"}) == "tekton.dev/v1";
  return ObjectIn(tasks ? ObjectIn(spec, "taskRunTemplate") : spec, "podTemplate");
}

bool IsEmpty(const PodScheduling& place) {
  return place.node_selector.empty() && place.required.empty() && place.preferred.empty() &&
         place.tolerations.empty();
}

}  // namespace

bool IsOperatorKind(const Json& object) {
  return IsTrainJob(object) || IsWorkflow(object) || IsOfTekton(object);
}

Status PassOn(const Json& pod, const PodScheduling& place, const AttemptRecipe& recipe,
              Json& object) {
  Json& spec = ObjectIn(object, "spec");
  if (IsTrainJob(object)) {
    PatchRuntime(pod, recipe, spec);
    return absl::OkStatus();
  }
  const bool workflow = IsWorkflow(object);
  Json& passed = ObjectIn(workflow ? spec : object, workflow ? "podMetadata" : "metadata");
  for (const char* field : {"labels", "annotations"}) Merge(pod["metadata"], field, passed);
  if (IsEmpty(place)) return absl::OkStatus();
  return ApplyScheduling(place, workflow ? spec : PodTemplateOf(object));
}

Json& TrainerOf(Json& object) { return ObjectIn(ObjectIn(object, "spec"), "trainer"); }

int64_t TrainerNodes(const Json& object) {
  return std::max<int64_t>(1, Number(At(object, {"spec", "trainer", "numNodes"})));
}

Json TrainerPod(const Json& object) {
  const Json& resources = At(object, {"spec", "trainer", "resourcesPerNode"});
  Json container = {{"name", "node"}};
  if (resources.is_object()) container["resources"] = resources;
  return {{"spec", {{"containers", Json::array({std::move(container)})}}}};
}

bool SharesObjectName(const std::string& group, const std::string& kind) {
  return group == "trainer.kubeflow.org" && kind == "TrainJob";
}

std::string ObjectName(const AttemptKey& key, const Json& object) {
  return IsTrainJob(object) ? TrialName(key.trial) : AttemptName(key);
}

std::optional<std::string> WhyErred(const Json& object) {
  if (!IsWorkflow(object) || Text(object, {"status", "phase"}) != "Error") return std::nullopt;
  return Text(object, {"status", "message"});
}

std::string OwnerLabel(const std::string& group, const std::string& kind) {
  return SharesObjectName(group, kind) ? kJobSetLabel : "";
}

}  // namespace shirabe::trial
