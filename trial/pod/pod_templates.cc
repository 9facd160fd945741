#include "trial/pod/pod_templates.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "trial/trial_template.h"

namespace shirabe::trial {
namespace {

// Where the walk stands.
struct Level {
  Json* owner = nullptr;
  std::string path;
  int64_t pods = 1;
};

// How many pods an object asks for, by the words that Jobs and operators have for it.
int64_t PodsOf(const Json& object) {
  int64_t pods = 1;
  for (const char* key : {"replicas", "parallelism", "completions"}) {
    pods = std::max(pods, Number(At(object, key)));
  }
  return pods;
}

void Collect(Json& value, const Level& place, std::vector<PodTemplate>& found) {
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      Collect(value[i], {place.owner, absl::StrCat(place.path, "[", i, "]"), place.pods}, found);
    }
  }
  if (!value.is_object()) return;
  if (At(value, {"spec", "containers"}).is_array()) {
    found.push_back({&value, place.owner, place.path, place.pods});
    return;
  }
  const int64_t pods = std::max(place.pods, PodsOf(value));
  for (auto& [key, field] : value.items()) {
    Collect(field, {&value, absl::StrCat(place.path, ".", key), pods}, found);
  }
}

Json Joined(const Json& a, const Json& b) {
  Json joined = a;
  for (const char* list : {"matchExpressions", "matchFields"}) {
    for (const Json& expression : Items(At(b, list))) ListIn(joined, list).push_back(expression);
  }
  return joined;
}

// The user's terms are alternatives, and so are ours: each of theirs with each of ours.
void Require(const Json& terms, Json& affinity) {
  Json& required = ObjectIn(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  Json& theirs = ListIn(required, "nodeSelectorTerms");
  if (theirs.empty()) {
    theirs = terms;
    return;
  }
  Json all = Json::array();
  for (const Json& their : theirs) {
    for (const Json& our : terms) all.push_back(their.is_object() ? Joined(their, our) : our);
  }
  theirs = std::move(all);
}

Status ApplySelector(const Json& wanted, Json& pod_spec) {
  Json& selector = ObjectIn(pod_spec, "nodeSelector");
  for (const auto& [key, value] : wanted.items()) {
    const Json& theirs = At(selector, key.c_str());
    if (theirs.is_string() && theirs != value) {
      return CannotProgress(absl::StrCat(
          "the trial's object asks for nodes with the label ", key, "=", Text(theirs),
          " and its pool for ", key, "=", Text(value),
          ": remove the nodeSelector, or name another pool in spec.shirabe.capacity.pools"));
    }
    selector[key] = value;
  }
  return absl::OkStatus();
}

}  // namespace

std::string PodTemplate::ContainerPath(size_t index) const {
  return absl::StrCat(path, ".spec.containers[", index, "]");
}

bool IsTrainJob(const Json& object) {
  return Text(object, {"kind"}) == "TrainJob" &&
         absl::StartsWith(Text(object, {"apiVersion"}), "trainer.kubeflow.org/");
}

std::vector<PodTemplate> FindTemplates(Json& object) {
  std::vector<PodTemplate> found;
  if (IsTrainJob(object)) return found;
  Collect(object, {nullptr, kTrialSpecPath, 1}, found);
  return found;
}

int IndexOfContainer(const PodTemplate& from, const std::string& name) {
  const Json& containers = At(*from.root, {"spec", "containers"});
  for (size_t i = 0; i < containers.size(); ++i) {
    if (Text(containers[i], {"name"}) == name) return static_cast<int>(i);
  }
  return -1;
}

Status ApplyScheduling(const PodScheduling& place, Json& pod_spec) {
  if (!place.node_selector.empty()) {
    RETURN_IF_ERROR(ApplySelector(place.node_selector, pod_spec));
  }
  for (const Json& toleration : place.tolerations) {
    ListIn(pod_spec, "tolerations").push_back(toleration);
  }
  if (place.required.empty() && place.preferred.empty()) return absl::OkStatus();
  Json& affinity = ObjectIn(ObjectIn(pod_spec, "affinity"), "nodeAffinity");
  if (!place.required.empty()) Require(place.required, affinity);
  for (const Json& term : place.preferred) {
    ListIn(affinity, "preferredDuringSchedulingIgnoredDuringExecution").push_back(term);
  }
  return absl::OkStatus();
}

Status CannotProgress(const std::string& why) {
  return absl::InvalidArgumentError("cannot progress: " + why);
}

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
