#include "trial/pod/primary_pod.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"

namespace shirabe::trial {
namespace {

// Of Kubeflow's training operator, on each of its pods.
constexpr char kRoleLabel[] = "training.kubeflow.org/job-role";
constexpr char kTypeLabel[] = "training.kubeflow.org/replica-type";
constexpr char kReplicaLabel[] = "training.kubeflow.org/replica-index";

std::string LabelOf(const AttemptRecipe& recipe, const char* label) {
  const auto found = recipe.primary_labels.find(label);
  return found == recipe.primary_labels.end() ? "" : absl::AsciiStrToLower(found->second);
}

// worker, of spec.….tfReplicaSpecs.Worker.template
std::string ReplicaTypeOf(const PodTemplate& pod) {
  const std::string owner(absl::StripSuffix(pod.path, ".template"));
  return absl::AsciiStrToLower(owner.substr(owner.rfind('.') + 1));
}

// Those that the labels may mean, the most likely first.
std::vector<std::string> TypesOf(const AttemptRecipe& recipe) {
  const std::string type = LabelOf(recipe, kTypeLabel);
  if (!type.empty()) return {type};
  const std::string role = LabelOf(recipe, kRoleLabel);
  if (role == "master") return {"master", "chief", "worker"};
  return role.empty() ? std::vector<std::string>() : std::vector<std::string>{role};
}

}  // namespace

std::optional<size_t> TemplateOfPrimary(const std::vector<PodTemplate>& pods,
                                        const std::vector<size_t>& candidates,
                                        const AttemptRecipe& recipe) {
  if (candidates.size() == 1) return candidates[0];
  for (const std::string& type : TypesOf(recipe)) {
    for (const size_t candidate : candidates) {
      if (ReplicaTypeOf(pods[candidate]) == type) return candidate;
    }
  }
  return std::nullopt;
}

bool PinFirstPod(const Json& object, AttemptRecipe& recipe) {
  const std::string version = Text(object, {"apiVersion"});
  const bool indexed = Text(object, {"spec", "completionMode"}) == "Indexed";
  if (Text(object, {"kind"}) == "Job" && absl::StartsWith(version, "batch/")) {
    if (!indexed) return false;
    recipe.primary_labels.emplace(kIndexLabel, "0");
    return true;
  }
  // The master of a role is one pod; without one the operator calls the first worker so.
  if (LabelOf(recipe, kRoleLabel) == "master") return true;
  if (!absl::StartsWith(version, "kubeflow.org/")) return false;
  recipe.primary_labels.emplace(kReplicaLabel, "0");
  return true;
}

Status CheckPrimaryLabels(const Json& labels, const AttemptRecipe& recipe) {
  for (const auto& [name, value] : recipe.primary_labels) {
    const bool controllers = absl::StartsWith(name, "batch.kubernetes.io/") || name == "job-name" ||
                             name == "controller-uid";
    if (controllers || Text(labels, {name.c_str()}) == value) continue;
    return InvalidField(
        "spec.trialTemplate.primaryPodLabels",
        absl::StrCat(
            "no pod will have ", name, "=", value,
            ": write it into the labels of the pods that trialSpec makes, or leave it out"));
  }
  return absl::OkStatus();
}

}  // namespace shirabe::trial
