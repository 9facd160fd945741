#include "trial/pod/reference_check.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trial/start_error.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kBelieved = absl::Seconds(10);
constexpr char kClaimedKind[] = "PersistentVolumeClaim";

kube::Resource ResourceOf(const std::string& kind) {
  const char* plural = kind == kClaimedKind ? "persistentvolumeclaims"
                       : kind == "Secret"   ? "secrets"
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
  if (found.ok() && reference.kind == kClaimedKind && IsGoing(*found)) {
    return absl::StrCat(where.substr(1), " is being deleted");
  }
  answers_.Keep(asked, found.status(), now + kBelieved);
  return "";
}

Status ReferenceCheck::Check(const AttemptObject& built) {
  const std::string ours = built.claim ? kube::NameOf(*built.claim) : "";
  std::vector<std::string> wrong;
  for (const PodReference& reference : ReferencesOf(built.object)) {
    if (reference.kind == kClaimedKind && reference.name == ours) continue;
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
