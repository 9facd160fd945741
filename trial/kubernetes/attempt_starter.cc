#include "trial/kubernetes/attempt_starter.h"

#include <optional>
#include <utility>

#include "base/file_io.h"
#include "base/log.h"
#include "kube/impersonation.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/removal_records.h"
#include "trial/kubernetes/succession.h"
#include "trial/local/supervisor_records.h"
#include "trial/pod/operator_kinds.h"
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
