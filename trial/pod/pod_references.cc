#include "trial/pod/pod_references.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trial/pod/operator_kinds.h"
#include "trial/pod/pod_templates.h"
#include "trial/start_error.h"

namespace shirabe::trial {
namespace {

constexpr size_t kMaxReferences = 64;
constexpr char kSecretKind[] = "Secret";
constexpr char kConfigMapKind[] = "ConfigMap";
constexpr char kReferredClaim[] = "PersistentVolumeClaim";

class References {
 public:
  void AddPod(const Json& spec);
  void AddContainer(const Json& container, const std::string& of);
  std::vector<PodReference> Take() { return std::move(found_); }

 private:
  void AddVolume(const Json& volume);
  void AddSource(const Json& source, const std::string& place);
  void Add(const char* kind, const std::string& name, const std::string& place);
  // `from` is what names it, and may say that it need not be there.
  void AddNamed(const char* kind, const Json& from, const char* field, const std::string& place) {
    if (!IsTrue(At(from, "optional"))) Add(kind, Text(from, {field}), place);
  }

  std::vector<PodReference> found_;
};

void References::Add(const char* kind, const std::string& name, const std::string& place) {
  const auto same = [&](const PodReference& one) { return one.kind == kind && one.name == name; };
  if (name.empty() || found_.size() >= kMaxReferences) return;
  if (std::none_of(found_.begin(), found_.end(), same)) found_.push_back({kind, name, place});
}

void References::AddContainer(const Json& container, const std::string& of) {
  for (const Json& variable : Items(At(container, "env"))) {
    const std::string place = absl::StrCat("env ", Text(variable, {"name"}), " of ", of);
    const Json& from = At(variable, "valueFrom");
    AddNamed(kSecretKind, At(from, "secretKeyRef"), "name", place);
    AddNamed(kConfigMapKind, At(from, "configMapKeyRef"), "name", place);
  }
  for (const Json& from : Items(At(container, "envFrom"))) {
    AddNamed(kSecretKind, At(from, "secretRef"), "name", "envFrom of " + of);
    AddNamed(kConfigMapKind, At(from, "configMapRef"), "name", "envFrom of " + of);
  }
}

// A Secret is called secretName in a volume of its own, and name in one that is projected.
void References::AddSource(const Json& source, const std::string& place) {
  AddNamed(kSecretKind, At(source, "secret"), "secretName", place);
  AddNamed(kSecretKind, At(source, "secret"), "name", place);
  AddNamed(kConfigMapKind, At(source, "configMap"), "name", place);
}

void References::AddVolume(const Json& volume) {
  const std::string place = "volume " + Text(volume, {"name"});
  AddSource(volume, place);
  for (const Json& source : Items(At(volume, {"projected", "sources"}))) AddSource(source, place);
  Add(kReferredClaim, Text(volume, {"persistentVolumeClaim", "claimName"}), place);
  Add(kSecretKind, Text(volume, {"csi", "nodePublishSecretRef", "name"}), place);
}

void References::AddPod(const Json& spec) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : Items(At(spec, list))) {
      AddContainer(container, "container " + Text(container, {"name"}));
    }
  }
  for (const Json& volume : Items(At(spec, "volumes"))) AddVolume(volume);
}

}  // namespace

std::vector<PodReference> ReferencesOf(const Json& object) {
  References references;
  if (IsTrainJob(object)) references.AddContainer(At(object, {"spec", "trainer"}), "spec.trainer");
  Json copy = object;
  for (const PodTemplate& pod : FindTemplates(copy)) references.AddPod(pod.spec());
  return references.Take();
}

namespace {

constexpr absl::Duration kBelieved = absl::Seconds(10);

kube::Resource ResourceOf(const std::string& kind) {
  const char* plural = kind == kReferredClaim ? "persistentvolumeclaims"
                       : kind == kSecretKind  ? "secrets"
                                              : "configmaps";
  return {"", "v1", plural, kind};
}

bool IsGoing(const Json& object) {
  return !Text(object, {"metadata", "deletionTimestamp"}).empty();
}

}  // namespace

std::string ReferenceCheck::WhatIsWrong(const PodReference& reference,
                                        const std::string& namespace_name) {
  const std::string asked = absl::StrCat(reference.kind, "/", namespace_name, "/", reference.name);
  const absl::Duration now = clock_.Monotonic();
  if (answers_.Find(asked, now)) return "";
  const auto found =
      client_.GetMetadata({ResourceOf(reference.kind), namespace_name, reference.name});
  const std::string where = absl::StrCat(" in namespace ", namespace_name);
  if (absl::IsNotFound(found.status())) return absl::StrCat("is missing", where);
  // A Secret and a ConfigMap are as good as before until they are gone; a claim takes no pod more.
  if (found.ok() && reference.kind == kReferredClaim && IsGoing(*found)) {
    return absl::StrCat(where.substr(1), " is being deleted");
  }
  answers_.Keep(asked, found.status(), now + kBelieved);
  return "";
}

Status ReferenceCheck::Check(const AttemptObject& built) {
  const std::string ours = built.claim ? kube::NameOf(*built.claim) : "";
  std::vector<std::string> wrong;
  for (const PodReference& reference : ReferencesOf(built.object)) {
    if (reference.kind == kReferredClaim && reference.name == ours) continue;
    const std::string what = WhatIsWrong(reference, kube::NamespaceOf(built.object));
    if (what.empty()) continue;
    wrong.push_back(
        absl::StrCat(reference.kind, " ", reference.name, " ", what, " (", reference.place, ")"));
  }
  if (wrong.empty()) return absl::OkStatus();
  return StartError(
      absl::StatusCode::kResourceExhausted, kReferenceMissing,
      absl::StrCat(
          absl::StrJoin(wrong, "; "),
          ". Create it, or correct its name; the trial starts by itself once it is there"));
}

}  // namespace shirabe::trial
