#include "trial/kubernetes/sidecar_sync.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/timestamp.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/removal_records.h"
#include "trial/local/supervisor_records.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kUrgentSyncInterval = absl::Milliseconds(250);
// Of a sidecar that makes copies: it tells by itself what they came to, and what it says meanwhile
// is that it lives. Well within the time that it is waited for (PodTimeouts::final_sync).
constexpr absl::Duration kCopyingSyncInterval = absl::Seconds(5);

// Of a SyncRequest or a GrantRequest.
template <class Request>
AttemptKey KeyOfRequest(const Request& request) {
  return {{ExperimentKeyOf(request), request.trial()}, request.attempt()};
}

// Ids go on from what the sidecar has heeded before, also across a restart of ours.
void AcknowledgeRequest(PodAttempt& attempt) {
  attempt.last_id = std::max(attempt.last_id, attempt.state.heeded());
  if (!attempt.pending_request || attempt.pending_request->id == 0) return;
  if (attempt.state.heeded() >= attempt.pending_request->id) attempt.pending_request.reset();
}

void FillRequest(PodAttempt& attempt, v1::SyncReply& reply) {
  if (!attempt.pending_request) return;
  PodAttempt::ProgramRequest& request = *attempt.pending_request;
  if (request.id == 0) request.id = ++attempt.last_id;
  reply.mutable_request()->set_id(request.id);
  reply.mutable_request()->set_reason(request.reason);
  *reply.mutable_request()->mutable_deadline() = ToProto(request.deadline);
}

int64_t NewestStep(const PodAttempt& attempt) {
  const auto& all = attempt.observed.checkpoints;  // by step
  return all.empty() ? -1 : all.back().step();
}

}  // namespace

StatusOr<v1::SyncReply> SidecarSync::Sync(const v1::SyncRequest& request,
                                          const std::string& bearer) {
  const AttemptKey key = KeyOfRequest(request);
  if (!ValidateKey(key).ok()) return NotCurrent();
  ASSIGN_OR_RETURN(const std::string id, Identify(key, request.token(), bearer));
  ASSIGN_OR_RETURN(FileMirror::ApplyResult taken, TakeFiles(key, request));
  if (!taken.error.empty()) {
    Log(LogLevel::kWarning, "a file of an attempt is not kept",
        {{"attempt", AttemptName(key)}, {"trouble", taken.error}});
  }
  v1::SyncReply reply;
  bool news = false;
  bool ending = false, spoken_of = false;
  CheckpointPruner::Checkpoints deleted;
  std::optional<kube::Ref> saved;  // the object of an attempt that has a newer checkpoint
  const absl::Duration interval = SyncInterval(context_.timeouts, parts_.attempts->size());
  // It may have ended meanwhile.
  RETURN_IF_ERROR(parts_.attempts->Admit(key, id, [&](PodAttempt& attempt) {
    const bool first = !attempt.heard;
    attempt.heard = context_.clock->Monotonic();
    const int64_t newest = NewestStep(attempt);
    if (request.has_state()) news = ApplyPodState(request.state(), attempt) || attempt.unsaved;
    if (NewestStep(attempt) > newest) saved = attempt.ref;
    attempt.unsaved = news;
    ending = attempt.progress.over || attempt.stop;
    spoken_of = first && !attempt.unheard_why.empty();
    AcknowledgeRequest(attempt);
    const bool awaited = ending && !attempt.state.copying() && !attempt.state.complete();
    const bool urgent = attempt.pending_request || awaited;
    const absl::Duration calm =
        attempt.state.copying() ? std::min(interval, kCopyingSyncInterval) : interval;
    *reply.mutable_next() = ToProto(urgent ? kUrgentSyncInterval : calm);
    FillRequest(attempt, reply);
    deleted = attempt.state.pruned();
  }));
  parts_.pruner->FillReply(key, deleted, reply);
  for (v1::FileHave& have : taken.have) *reply.add_files() = std::move(have);
  if (news) RETURN_IF_ERROR(Save(key, request.state()));
  if (saved) TellKueue(key, *saved);
  // That it lives is all that most requests of many sidecars tell, and the agenda counts on that.
  if (news || ending || spoken_of) parts_.watcher->Examine(key);
  return reply;
}

// Some of them may have been taken where the disk has refused the rest. Before the state that came
// with them: what was reported before a checkpoint is known when that is.
StatusOr<FileMirror::ApplyResult> SidecarSync::TakeFiles(const AttemptKey& key,
                                                         const v1::SyncRequest& request) {
  auto taken = parts_.mirror->Apply(key, request, request.state().complete());
  if (request.files().empty()) return taken;
  if (parts_.attempts->Visit(key, MarkFilesChanged)) context_.notify_output(key.trial.experiment);
  return taken;
}

StatusOr<v1::GrantReply> SidecarSync::Grant(const v1::GrantRequest& request,
                                            const std::string& bearer) {
  const AttemptKey key = KeyOfRequest(request);
  if (!ValidateKey(key).ok()) return NotCurrent();
  RETURN_IF_ERROR(Identify(key, /*token=*/"", bearer).status());
  return parts_.grants->Grant(key, request);
}

// In the background: nothing here waits for it, and the next checkpoint tells it again.
void SidecarSync::TellKueue(const AttemptKey& key, const kube::Ref& saved) {
  const auto object = context_.view->FindObject(saved);
  if (!object || !IsQueued(*object)) return;
  context_.run([client = context_.client, key, object = *object] {
    const Status told = PublishBoost(*client, object, PriorityBoost(key.number));
    if (told.ok() || absl::IsPermissionDenied(told)) return;  // an install without that right
    Log(LogLevel::kWarning, "failed to tell Kueue that an attempt has saved",
        {{"attempt", AttemptName(key)}, {"error", Message(told)}});
  });
}

// Before the answer: what was acknowledged is not told again.
Status SidecarSync::Save(const AttemptKey& key, const v1::PodState& state) {
  RETURN_IF_ERROR(SaveStateRecord(context_.layout->Paths(key).dir, state));
  parts_.attempts->Visit(key, [](PodAttempt& attempt) { attempt.unsaved = false; });
  context_.notify(key.trial.experiment);
  return absl::OkStatus();
}

// The id of the attempt that the caller is of. Pods of version 0.1 were given their attempt's
// token; since then they show their own, which the API server knows.
StatusOr<std::string> SidecarSync::Identify(const AttemptKey& key, const std::string& token,
                                            const std::string& bearer) {
  const auto nothing = [](PodAttempt&) {};
  if (!token.empty()) {
    const std::string id = AttemptId(key, token);
    RETURN_IF_ERROR(parts_.attempts->Admit(key, id, nothing));
    return id;
  }
  const std::string pod = PodTokenReviewer::ClaimedPod(bearer);
  std::string id;
  bool its_own = false, secondary = false;
  parts_.attempts->Visit(key, [&](PodAttempt& attempt) {
    id = attempt.id;
    its_own = !pod.empty() && attempt.own_pod == pod;
    if (its_own) return;
    its_own = IsItsPod(attempt, pod);
    secondary = its_own && IsSecondary(attempt, pod);
    if (its_own && !secondary) attempt.own_pod = pod;
  });
  RETURN_IF_ERROR(parts_.attempts->Admit(key, id, nothing));
  // What is not seen yet may be a moment away; what is not there is not asked about.
  if (pod.empty() || secondary) return NotCurrent();
  if (!its_own) return absl::UnavailableError("not ready yet; try again");
  RETURN_IF_ERROR(token_reviewer_.Check(bearer, key.trial.experiment.ns, pod));
  return id;
}

// Of several pods of one template each has our containers, and one of them is the attempt's.
bool SidecarSync::IsSecondary(const PodAttempt& attempt, const std::string& uid) const {
  if (attempt.recipe.primary_labels.empty()) return false;
  for (const Json& pod : context_.view->PodsOf(attempt.key)) {
    if (UidOf(pod) == uid) return !IsPrimary(pod, attempt.recipe);
  }
  return false;
}

// Whether the pod was made for the attempt's own object: labels alone prove nothing.
bool SidecarSync::IsItsPod(const PodAttempt& attempt, const std::string& uid) const {
  if (attempt.uid.empty() || uid.empty()) return false;
  for (const Json& pod : context_.view->PodsOf(attempt.key)) {
    if (UidOf(pod) != uid) continue;
    if (uid == attempt.uid) return true;
    const Json& owner = ItemBy(At(pod, {"metadata", "ownerReferences"}), "uid", attempt.uid);
    if (attempt.ref.resource.kind == Jobs().kind) return !owner.is_null();
    return !owner.is_null() || AnnotationOf(pod, kPodAttemptIdAnnotation) == attempt.id;
  }
  return false;
}

}  // namespace shirabe::trial
