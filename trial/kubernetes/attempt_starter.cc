#include "trial/kubernetes/attempt_starter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/log.h"
#include "kube/impersonation.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/pod_attempt.h"
#include "trial/kubernetes/removal_records.h"
#include "trial/kubernetes/teardowns.h"
#include "trial/local/supervisor_records.h"
#include "trial/pod/operator_kinds.h"
#include "trial/pod/pod_names.h"
#include "trial/pod/pod_scheduling.h"

namespace shirabe::trial {
namespace {

constexpr size_t kStarters = 16;
constexpr char kTrainJobVersion[] = "trainer.kubeflow.org/v1alpha1";

Status MakeClaim(kube::Client& client, const AttemptObject& built) {
  if (!built.claim) return absl::OkStatus();
  const Status status = client.Create(Claims(), *built.claim).status();
  if (status.ok() || absl::IsAlreadyExists(status)) return absl::OkStatus();
  const Status told = absl::IsPermissionDenied(status) ? AsStartError(status) : status;
  return Prefix("the claim for its checkpoints", told);
}

PodAttempt NewAttempt(const AttemptKey& key, const std::string& token) {
  PodAttempt attempt;
  attempt.key = attempt.observed.key = key;
  attempt.id = AttemptId(key, token);
  attempt.observed.begin_known = false;
  return attempt;
}

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

// Where one of its pods will not go, being on a machine that has vanished, or `at_once`, what
// stands above the pod goes before it. Else it goes last, so that callers who ask for the name find
// one object or the other.
Status RemoveObject(const ClusterContext& context, const kube::Ref& ref, const Json& object,
                    bool at_once) {
  const AttemptKey key = *KeyOf(object);
  bool all_ended = true;
  for (const Json& pod : context.view->PodsOf(key)) all_ended &= IsTerminal(pod);
  for (const Json& pod : context.view->PodsMadeOf(ref)) all_ended &= IsTerminal(pod);
  for (const Json& pod : HeldPods(*context.view, key)) {
    RETURN_IF_ERROR(RemoveLogFinalizer(*context.client, pod));
  }
  kube::DeleteOptions options;
  options.uid = UidOf(object);
  options.propagation = all_ended && !at_once ? "Foreground" : "Background";
  const Status status = context.client->Delete(ref, options);
  return absl::IsNotFound(status) || absl::IsAborted(status) ? absl::OkStatus() : status;
}

// Where we may not ask for it, its object's end is all there is to go by.
bool HasJobSet(const ClusterContext& context, const kube::Ref& ref) {
  const auto jobsets = context.client->FindResource(kJobSetVersion, "JobSet");
  if (!jobsets.ok()) return false;
  return context.client->Get({*jobsets, ref.namespace_name, ref.name}).ok();
}

// How the object of an attempt takes the place of that of an earlier one, where all attempts of a
// trial have an object of one name (trial/pod/operator_kinds.h): the earlier one is deleted, and
// the next is made once it is gone from the API server, with the JobSet that has its name. Else
// its operator would take what the old one has come to for the state of the new one. Each step may
// be done twice, by any process, after any crash. Used by the executor `kubernetes`; thread-safe;
// calls block, at most for PodTimeouts::succession.
//
// OK once nothing that has the name of `next`, which is to be made, is left of an earlier attempt
// of its trial. What is not of one stays, and CreateOrAdopt says so. Of an attempt before the
// current one all is stored, so its pods are let go. kResourceExhausted, in words, where it does
// not go; kUnavailable where the API server does not answer.
Status RemovePredecessor(const ClusterContext& context, const kube::Ref& ref, const Json& next) {
  const absl::Duration began = context.clock->Monotonic();
  const absl::Duration until = began + context.timeouts.succession;
  std::string removed;  // uid
  bool at_once = false;
  for (;;) {
    const auto found = context.client->Get(ref);
    if (!found.ok() && !absl::IsNotFound(found.status())) {
      return absl::UnavailableError(Message(found.status()));
    }
    if (found.ok() && !IsPredecessor(*found, next)) return absl::OkStatus();
    if (!found.ok() && !HasJobSet(context, ref)) return absl::OkStatus();
    // An operator may make again what the garbage collector deletes below an object that is to go
    // last, which then never goes: Kubeflow's Trainer does so with the JobSet of a TrainJob.
    const bool stuck =
        !at_once && context.clock->Monotonic() >= began + context.timeouts.succession / 3;
    if (found.ok() && (stuck || removed != UidOf(*found))) {
      at_once |= stuck;
      const Status status = RemoveObject(context, ref, *found, at_once);
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

}  // namespace

AttemptStarter::AttemptStarter(const ClusterContext* context, const Parts& parts)
    : context_(*context),
      parts_(parts),
      references_(context->client, context->clock),
      threads_(kStarters) {}

// Many are started one after the other, and an API server that is busy takes its time for each: the
// caller goes on after a while, and the object is made meanwhile. If that fails, the attempt is not
// to be seen any more, is started again for that, and the caller is told then; from there on it
// waits for the answer.
Status AttemptStarter::Start(const AttemptRequest& request) {
  const AttemptKey& key = request.key;
  RETURN_IF_ERROR(ValidateKey(key));
  RETURN_IF_ERROR(parts_.cleaner->CheckClean(request));
  PodAttempt attempt = NewAttempt(key, request.token);
  ASSIGN_OR_RETURN(const auto patience, parts_.attempts->Reserve(key, attempt.id));
  if (!patience) return absl::OkStatus();
  const Status room = parts_.teardowns->MakeRoom(key);
  if (!room.ok()) {
    parts_.attempts->Release(key);
    return room;
  }
  auto built = Prepare(request, attempt);
  if (!built.ok()) {
    parts_.attempts->Release(key);
    return Prefix(AttemptName(key), built.status());
  }
  threads_.Run([this, key, built = *std::move(built), attempt = std::move(attempt)]() mutable {
    auto made = Make(built, std::move(attempt));
    const bool exists = made.ok();
    const auto outcome = parts_.attempts->FinishStart(key, std::move(made));
    if (exists) parts_.watcher->Examine(key);
    if (outcome.stop) parts_.watcher->Stop(key, outcome.stop->why, outcome.stop->grace);
    if (outcome.unheard) context_.notify(key.trial.experiment);
  });
  return parts_.attempts->AwaitStart(key, *patience);
}

// All that need not be asked of the cluster.
StatusOr<AttemptObject> AttemptStarter::Prepare(const AttemptRequest& request,
                                                PodAttempt& attempt) {
  ASSIGN_OR_RETURN(const PodScheduling place,
                   SchedulingFor(request.placement_request, *context_.pools));
  ASSIGN_OR_RETURN(AttemptObject built, BuildAttemptObject(request, *context_.pods, place));
  ASSIGN_OR_RETURN(attempt.ref.resource,
                   TrialKind(*context_.client, built.api_version, built.kind));
  attempt.ref.namespace_name = NamespaceOf(built.object);
  attempt.ref.name = NameOf(built.object);
  attempt.observed.placement.set_price_per_hour(
      parts_.quotes->Estimate(request.trial_spec, request.placement_request));
  RETURN_IF_ERROR(SaveInputs(request, attempt.ref));
  for (const std::string& warning : built.warnings) {
    Log(LogLevel::kWarning, "a trial's object has questionable fields",
        {{"attempt", AttemptName(request.key)}, {"warning", warning}});
  }
  parts_.pruner->RecordScope(request);
  return built;
}

Status AttemptStarter::SaveInputs(const AttemptRequest& request, const kube::Ref& ref) {
  const AttemptPaths paths = context_.layout->Paths(request.key);
  RETURN_IF_ERROR(context_.layout->Create(request.key).status());
  RETURN_IF_ERROR(WriteFileAtomic(paths.params_file, request.parameters_json));
  RETURN_IF_ERROR(SaveObjectRecord(paths.dir, ref));
  RETURN_IF_ERROR(parts_.grants->Record(request));
  // A program that prints nothing has a log all the same, as on a machine of ours.
  parts_.mirror->AppendLog(request.key, "").IgnoreError();
  return absl::OkStatus();
}

// What was made before stays as it is, whatever is missing by now.
Status AttemptStarter::CheckReferences(const AttemptObject& built, const PodAttempt& attempt) {
  const Status there = references_.Check(built);
  if (there.ok()) return there;
  const auto object = context_.client->Get(attempt.ref);
  return object.ok() && AttemptIdOf(*object) == attempt.id ? absl::OkStatus() : there;
}

// With the object in the cluster, made now or before.
StatusOr<PodAttempt> AttemptStarter::Make(const AttemptObject& built, PodAttempt attempt) {
  RETURN_IF_ERROR(CheckReferences(built, attempt));
  RETURN_IF_ERROR(MakeClaim(*context_.client, built));
  const kube::Resource& resource = attempt.ref.resource;
  context_.view->Follow(resource);
  if (SharesObjectName(resource.group, resource.kind)) {
    const Status room = RemovePredecessor(context_, attempt.ref, built.object);
    if (kube::IsAccountRefused(room)) return AsStartError(room);
    RETURN_IF_ERROR(room);
  }
  ASSIGN_OR_RETURN(const Json object,
                   CreateOrAdopt(*context_.client, resource, built.object, attempt.id));
  context_.view->Put(resource, object);
  Bind(object, attempt);
  LoadState(attempt);
  return attempt;
}

// What an earlier process of ours was told by its sidecar.
void AttemptStarter::LoadState(PodAttempt& attempt) const {
  const auto state = LoadStateRecord(context_.layout->Paths(attempt.key).dir);
  if (state.ok()) ApplyPodState(*state, attempt);
}

// Where the record of an attempt's object is lost: a Job, unless there is another kind of object
// that is its own.
kube::Ref AttemptStarter::FindObject(const AttemptKey& key, const std::string& id) const {
  const std::string& ns = key.trial.experiment.ns;
  const auto trainjobs = context_.client->FindResource(kTrainJobVersion, "TrainJob");
  if (trainjobs.ok()) {
    const kube::Ref ref{*trainjobs, ns, TrialName(key.trial)};
    const auto object = context_.client->Get(ref);
    if (object.ok() && AttemptIdOf(*object) == id) return ref;
  }
  return {Jobs(), ns, AttemptName(key)};
}

void AttemptStarter::Adopt(const v1::Attempt& record) {
  const AttemptKey key = {{ExperimentKeyOf(record), record.trial()}, record.number()};
  if (!ValidateKey(key).ok()) return;
  PodAttempt attempt = NewAttempt(key, record.token());
  context_.layout->Create(key).IgnoreError();  // a later write says what is wrong
  const auto recorded = LoadObjectRecord(context_.layout->Paths(key).dir);
  attempt.ref = recorded.ok() ? *recorded : FindObject(key, attempt.id);
  context_.view->Follow(attempt.ref.resource);
  LoadState(attempt);
  if (parts_.attempts->Adopt(std::move(attempt))) parts_.watcher->Examine(key);
}

}  // namespace shirabe::trial
