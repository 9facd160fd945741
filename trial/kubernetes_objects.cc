#include "trial/kubernetes_objects.h"

#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "trial/pod_labels.h"

namespace shirabe::trial {
namespace {

void Drop(Json& object, const char* pointer, std::initializer_list<const char*> fields) {
  const Json::json_pointer path(pointer);
  if (!object.is_object() || !object.contains(path)) return;
  Json& parent = object.at(path);
  if (!parent.is_object()) return;
  for (const char* field : fields) parent.erase(field);
}

void TrimContainers(Json& pod, const char* pointer) {
  const Json::json_pointer path(pointer);
  if (!pod.contains(path) || !pod.at(path).is_array()) return;
  Json kept = Json::array();
  for (const Json& container : pod.at(path)) {
    Json slim = Json::object();
    for (const char* field : {"name", "image", "resources", "restartPolicy"}) {
      if (container.is_object() && container.contains(field)) slim[field] = container[field];
    }
    kept.push_back(std::move(slim));
  }
  pod[path] = std::move(kept);
}

}  // namespace

const kube::Resource& Jobs() {
  static const kube::Resource resource{"batch", "v1", "jobs", "Job"};
  return resource;
}

const kube::Resource& Pods() {
  static const kube::Resource resource{"", "v1", "pods", "Pod"};
  return resource;
}

const kube::Resource& Nodes() {
  static const kube::Resource resource{"", "v1", "nodes", "Node", /*namespaced=*/false};
  return resource;
}

const kube::Resource& Events() {
  static const kube::Resource resource{"", "v1", "events", "Event"};
  return resource;
}

const kube::Resource& Claims() {
  static const kube::Resource resource{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"};
  return resource;
}

std::string AnnotationOf(const Json& object, const char* name) {
  return Text(object, {"metadata", "annotations", name});
}

bool IsDeleting(const Json& object) {
  return !Text(object, {"metadata", "deletionTimestamp"}).empty();
}

std::string SelectorOf(const ExperimentKey& experiment, int64_t trial) {
  return absl::StrCat(ClaimSelectorOf(experiment, trial), ",", kAttemptLabel);
}

std::string ClaimSelectorOf(const ExperimentKey& experiment, int64_t trial) {
  std::string selector =
      absl::StrCat(kExperimentLabel, "=", experiment.name, ",", kManagedByLabel, "=", kManager);
  if (trial > 0) absl::StrAppend(&selector, ",", kTrialLabel, "=", TrialName({experiment, trial}));
  return selector;
}

int FinalizerAt(const Json& object, const std::string& finalizer) {
  const Json& all = Items(At(object, {"metadata", "finalizers"}));
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == finalizer) return static_cast<int>(i);
  }
  return -1;
}

Json FinalizerPatch(int place, const std::string& finalizer) {
  const std::string path = absl::StrCat("/metadata/finalizers/", place);
  return Json::array(
      {{{"op", "test"}, {"path", path}, {"value", finalizer}}, {{"op", "remove"}, {"path", path}}});
}

void TrimPod(Json& pod) {
  if (!pod.is_object()) return;
  if (pod.contains("spec") && pod["spec"].is_object()) {
    Json slim = Json::object();
    for (const char* field : {"nodeName", "containers", "initContainers", "schedulingGates",
                              "terminationGracePeriodSeconds"}) {
      if (pod["spec"].contains(field)) slim[field] = std::move(pod["spec"][field]);
    }
    pod["spec"] = std::move(slim);
  }
  TrimContainers(pod, "/spec/containers");
  TrimContainers(pod, "/spec/initContainers");
  Drop(pod, "/metadata", {"managedFields", "generateName"});
  Drop(pod, "/metadata/annotations", {"kubectl.kubernetes.io/last-applied-configuration"});
  Drop(pod, "/status", {"podIPs", "hostIPs", "qosClass"});
}

void TrimJob(Json& job) {
  Drop(job, "/spec", {"template", "selector"});
  Drop(job, "/metadata", {"managedFields"});
  Drop(job, "/metadata/annotations", {"kubectl.kubernetes.io/last-applied-configuration"});
}

void TrimNode(Json& node) {
  Drop(node, "/metadata", {"managedFields"});
  Drop(node, "/status",
       {"images", "nodeInfo", "addresses", "volumesInUse", "volumesAttached", "daemonEndpoints",
        "runtimeHandlers", "features"});
}

std::string NodeSignature(const Json& node) {
  std::string signature = UidOf(node);
  if (IsDeleting(node)) signature += "|deleting";
  for (const Json& taint : Items(At(node, {"spec", "taints"}))) {
    absl::StrAppend(&signature, "|", Text(taint, {"key"}), "=", Text(taint, {"value"}), ":",
                    Text(taint, {"effect"}));
  }
  for (const Json& condition : Items(At(node, {"status", "conditions"}))) {
    absl::StrAppend(&signature, "|", Text(condition, {"type"}), "=", Text(condition, {"status"}),
                    Text(condition, {"reason"}));
  }
  return signature;
}

}  // namespace shirabe::trial
