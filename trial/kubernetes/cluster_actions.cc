#include "trial/kubernetes/cluster_actions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kube/impersonation.h"
#include "trial/pod/pod_names.h"
#include "trial/start_error.h"

namespace shirabe::trial {
namespace {

constexpr int kPatchTries = 4;
// All that a kubelet answers, with 200, for a container that it has removed, or is removing.
constexpr std::array kLogIsGone = {"unable to retrieve container logs for ",
                                   "failed to try resolving symlinks in path "};

kube::Ref PodRef(const Json& pod) { return {Pods(), NamespaceOf(pod), NameOf(pod)}; }

Status UnlessGone(const Status& status) {
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

Status DeleteEach(kube::Client& client, const kube::Query& query) {
  ASSIGN_OR_RETURN(const Json list, client.List(query));
  Status first;
  for (const Json& item : list.value("items", Json::array())) {
    const kube::Ref ref{query.resource, NamespaceOf(item), NameOf(item)};
    if (query.resource.kind == Pods().kind) first.Update(RemoveLogFinalizer(client, item));
    first.Update(DeleteObject(client, ref, UidOf(item)));
  }
  return first;
}

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

// The operator that brings a kind, by its product name.
std::string OperatorOf(const std::string& api_version, const std::string& kind) {
  struct Operator {
    const char* group;
    const char* name;
  };
  static constexpr Operator kOperators[] = {
      {"trainer.kubeflow.org/", "Kubeflow Trainer (2.3 or newer, with JobSet)"},
      {"kubeflow.org/v2beta1", "Kubeflow's MPI operator"},
      {"kubeflow.org/", "Kubeflow's training operator (1.8 or newer)"},
      {"jobset.x-k8s.io/", "JobSet"},
      {"argoproj.io/", "Argo Workflows"},
      {"tekton.dev/", "Tekton Pipelines"},
      {"ray.io/", "KubeRay"},
  };
  for (const Operator& one : kOperators) {
    if (absl::StartsWith(api_version, one.group)) return one.name;
  }
  return "the operator that brings " + kind;
}

}  // namespace

Status AsStartError(const Status& status) {
  const std::string words = Message(status);
  if (kube::IsAccountRefused(status)) {
    return StartError(absl::StatusCode::kResourceExhausted, kAccountRefused, words);
  }
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted: return absl::ResourceExhaustedError(words);
    case absl::StatusCode::kNotFound:
      return absl::ResourceExhaustedError(words + "; create the namespace");
    case absl::StatusCode::kInvalidArgument:
      // A webhook may allow the same object tomorrow.
      if (absl::StrContains(words, "admission webhook")) {
        return absl::ResourceExhaustedError(words);
      }
      return status;
    default: return absl::UnavailableError(words);
  }
}

StatusOr<Json> CreateOrAdopt(kube::Client& client, const kube::Resource& resource,
                             const Json& object, const std::string& id) {
  auto made = client.Create(resource, object);
  if (made.ok()) return made;
  if (!absl::IsAlreadyExists(made.status())) return AsStartError(made.status());
  // It may have been made by us: in another life, or by a call whose answer was lost.
  auto found = client.Get({resource, NamespaceOf(object), NameOf(object)});
  if (absl::IsNotFound(found.status())) return absl::UnavailableError("it is just being deleted");
  if (!found.ok()) return AsStartError(found.status());
  if (AttemptIdOf(*found) == id) return found;
  if (IsDeleting(*found)) return absl::UnavailableError("another of its name is being deleted");
  return absl::AlreadyExistsError(
      absl::StrCat("there is a ", resource.kind, " ", NamespaceOf(object), "/", NameOf(object),
                   " that belongs to another owner; delete it, or rename the experiment"));
}

StatusOr<kube::Resource> TrialKind(kube::Client& client, const std::string& api_version,
                                   const std::string& kind) {
  const std::string what =
      absl::StrCat("spec.trialTemplate.trialSpec is a ", kind, " of ", api_version);
  for (const kube::Resource& known : {Jobs(), Pods()}) {
    if (known.kind == kind && known.ApiVersion() == api_version) return known;
  }
  auto found = client.FindResource(api_version, kind);
  if (absl::IsNotFound(found.status())) {
    return absl::UnimplementedError(what + ", which this cluster does not know: install " +
                                    OperatorOf(api_version, kind) +
                                    ", and the experiment goes on by itself; or use a Job");
  }
  // What is of no namespace no user may make: the right to write experiments is of one.
  if (found.ok() && !found->namespaced) {
    return absl::InvalidArgumentError(
        what + ", which is of no namespace: use a Job, or another kind that runs pods");
  }
  return found;
}

Status EndPod(kube::Client& client, const Json& pod, absl::Duration grace) {
  kube::DeleteOptions options;
  options.uid = UidOf(pod);
  // 0 would take the pod out of the books before it has ended.
  options.grace = absl::Seconds(std::max(1.0, std::ceil(absl::ToDoubleSeconds(grace))));
  const Status status = client.Delete(PodRef(pod), options);
  return absl::IsAborted(status) ? absl::OkStatus() : UnlessGone(status);  // another one by now
}

Status RemoveLogFinalizer(kube::Client& client, Json pod) {
  Status status;
  for (int i = 0; i < kPatchTries; ++i) {
    const int place = FinalizerAt(pod, kLogFinalizer);
    if (place < 0) return absl::OkStatus();
    status = client
                 .Patch(PodRef(pod), kube::PatchType::kJson, FinalizerPatch(place, kLogFinalizer),
                        /*subresource=*/"")
                 .status();
    if (status.ok() || absl::IsNotFound(status)) return absl::OkStatus();
    // The list of finalizers is another one by now: look again.
    if (!absl::IsAborted(status) && !absl::IsInvalidArgument(status)) return status;
    auto again = client.Get(PodRef(pod));
    if (!again.ok()) return UnlessGone(again.status());
    if (UidOf(*again) != UidOf(pod)) return absl::OkStatus();
    pod = *std::move(again);
  }
  return status;
}

Status SuspendObject(kube::Client& client, const kube::Ref& ref, const std::string& uid) {
  const Json patch = {{"metadata", {{"uid", uid}}}, {"spec", {{"suspend", true}}}};
  const Status status = client.Patch(ref, kube::PatchType::kMerge, patch, "").status();
  return absl::IsAborted(status) ? absl::OkStatus() : UnlessGone(status);  // another one by now
}

Status DeleteObject(kube::Client& client, const kube::Ref& ref, const std::string& uid) {
  kube::DeleteOptions options;
  options.uid = uid;
  const Status status = client.Delete(ref, options);
  return absl::IsAborted(status) ? absl::OkStatus() : UnlessGone(status);
}

Status DeleteJobsOf(kube::Client& client, const std::string& ns,
                    const std::vector<std::string>& ids) {
  const kube::Query query{Jobs(), ns,
                          absl::StrCat(kAttemptIdLabel, " in (", absl::StrJoin(ids, ","), ")"), ""};
  return UnlessGone(client.DeleteCollection(query, {}));
}

Status DeleteAllOf(kube::Client& client, const TrialKey& trial, const ObjectKind& other) {
  kube::Query query;
  query.namespace_name = trial.experiment.ns;
  query.label_selector = SelectorOf(trial.experiment, trial.number);
  Status first;
  if (!other.kind.empty()) {
    // Before its pods, which its controller would make again.
    const auto resource = client.FindResource(other.api_version, other.kind);
    first.Update(UnlessGone(resource.status()));  // the cluster may know the kind no more
    if (resource.ok()) {
      query.resource = *resource;
      first.Update(DeleteEach(client, query));
    }
  }
  query.resource = Jobs();
  first.Update(DeleteEach(client, query));
  query.resource = Pods();
  first.Update(DeleteEach(client, query));
  query.resource = Claims();
  query.label_selector = ClaimSelectorOf(trial.experiment, trial.number);
  first.Update(DeleteEach(client, query));
  return first;
}

bool IsQueued(const Json& object) {
  return !Text(object, {"metadata", "labels", "kueue.x-k8s.io/queue-name"}).empty();
}

int PriorityBoost(int32_t attempt) { return std::clamp(attempt - 1, 0, 5) - 1; }

Status PublishBoost(kube::Client& client, const Json& object, int boost) {
  constexpr char kBoost[] = "kueue.x-k8s.io/priority-boost";
  auto workloads = client.FindResource("kueue.x-k8s.io/v1beta2", "Workload");
  if (!workloads.ok()) workloads = client.FindResource("kueue.x-k8s.io/v1beta1", "Workload");
  if (!workloads.ok()) return UnlessGone(workloads.status());
  const kube::Query query{*workloads, NamespaceOf(object),
                          "kueue.x-k8s.io/job-uid=" + UidOf(object), ""};
  ASSIGN_OR_RETURN(const Json list, client.List(query));
  const std::string value = absl::StrCat(boost);
  for (const Json& workload : Items(At(list, {"items"}))) {
    if (AnnotationOf(workload, kBoost) == value) continue;
    const kube::Ref ref{*workloads, NamespaceOf(workload), NameOf(workload)};
    const Json patch = {
        {"metadata", {{"uid", UidOf(workload)}, {"annotations", {{kBoost, value}}}}}};
    const Status patched = client.Patch(ref, kube::PatchType::kMerge, patch, "").status();
    RETURN_IF_ERROR(UnlessGone(patched));
  }
  return absl::OkStatus();
}

StatusOr<std::string> ReadLogOf(kube::Client& client, const Json& pod, const std::string& container,
                                int64_t limit) {
  std::string text;
  kube::LogOptions options;
  options.container = container;
  const auto sink = [&](std::string_view piece) {
    text.append(piece.data(), piece.size());
    if (static_cast<int64_t>(text.size()) > 2 * limit) text.erase(0, text.size() - limit);
    return true;
  };
  RETURN_IF_ERROR(client.ReadLog(PodRef(pod), options, sink, {}));
  const bool gone = std::any_of(kLogIsGone.begin(), kLogIsGone.end(),
                                [&](const char* words) { return absl::StartsWith(text, words); });
  if (gone && !absl::StrContains(text, '\n')) {
    return absl::NotFoundError("the log of " + container + " is gone: " + text);
  }
  if (static_cast<int64_t>(text.size()) > limit) text.erase(0, text.size() - limit);
  return text;
}

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
