#include "trial/kubernetes/succession.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "trial/kubernetes/pod_attempt.h"
#include "trial/kubernetes/teardowns.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(50);
constexpr char kJobSetVersion[] = "jobset.x-k8s.io/v1alpha2";

std::string OwnerUid(const Json& object) {
  for (const Json& owner : Items(At(object, {"metadata", "ownerReferences"}))) {
    if (IsTrue(At(owner, "controller"))) return Text(owner, {"uid"});
  }
  return "";
}

// One that we have made, for the same Experiment and trial: labels alone can be copied.
bool IsPredecessor(const Json& object, const Json& next) {
  const auto old_key = KeyOf(object), key = KeyOf(next);
  return old_key && key && old_key->trial == key->trial && old_key->number < key->number &&
         !AttemptIdOf(object).empty() && OwnerUid(object) == OwnerUid(next);
}

// Where one of its pods will not go, being on a machine that has vanished, what stands above the
// pod goes before it. Else it goes last, so that callers who ask for the name find one object or
// the other.
Status RemoveObject(const ClusterContext& context, const kube::Ref& ref, const Json& object) {
  const AttemptKey key = *KeyOf(object);
  bool all_ended = true;
  for (const Json& pod : context.view->PodsOf(key)) all_ended &= IsTerminal(pod);
  for (const Json& pod : context.view->PodsMadeOf(ref)) all_ended &= IsTerminal(pod);
  for (const Json& pod : HeldPods(*context.view, key)) {
    RETURN_IF_ERROR(RemoveLogFinalizer(*context.client, pod));
  }
  kube::DeleteOptions options;
  options.uid = UidOf(object);
  options.propagation = all_ended ? "Foreground" : "Background";
  const Status status = context.client->Delete(ref, options);
  return absl::IsNotFound(status) || absl::IsAborted(status) ? absl::OkStatus() : status;
}

// Where we may not ask for it, its object's end is all there is to go by.
bool HasJobSet(const ClusterContext& context, const kube::Ref& ref) {
  const auto jobsets = context.client->FindResource(kJobSetVersion, "JobSet");
  if (!jobsets.ok()) return false;
  return context.client->Get({*jobsets, ref.namespace_name, ref.name}).ok();
}

}  // namespace

Status RemovePredecessor(const ClusterContext& context, const kube::Ref& ref, const Json& next) {
  const absl::Duration until = context.clock->Monotonic() + context.timeouts.succession;
  std::string removed;  // uid
  for (;;) {
    const auto found = context.client->Get(ref);
    if (!found.ok() && !absl::IsNotFound(found.status())) {
      return absl::UnavailableError(Message(found.status()));
    }
    if (found.ok() && !IsPredecessor(*found, next)) return absl::OkStatus();
    if (!found.ok() && !HasJobSet(context, ref)) return absl::OkStatus();
    if (found.ok() && removed != UidOf(*found)) {
      const Status status = RemoveObject(context, ref, *found);
      if (!status.ok()) return Prefix("the object of the attempt before", status);
      removed = UidOf(*found);
    }
    if (context.clock->Monotonic() >= until) break;
    Pause(std::min(kLook, context.timeouts.retry));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the ", ref.resource.kind, " ", ref.name,
                   " of the attempt before is still being deleted: look what holds it (kubectl ",
                   "describe, metadata.finalizers), and whether its operator runs"));
}

}  // namespace shirabe::trial
