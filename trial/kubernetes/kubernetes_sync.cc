// What the executor `kubernetes` and the sidecars of its attempts say to each other.
#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/timestamp.h"
#include "trial/kubernetes/kubernetes_executor.h"
#include "trial/kubernetes/removal_records.h"
#include "trial/local/supervisor_records.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kUrgentSyncInterval = absl::Milliseconds(250);
constexpr double kSyncsPerSecond = 500;  // of all sidecars together

AttemptKey KeyOfRequest(const v1::SyncRequest& request) {
  return {{ExperimentKeyOf(request), request.trial()}, request.attempt()};
}

bool SameSecret(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Status NotCurrent() {
  return absl::PermissionDeniedError("the attempt is not current, or the token is not its own");
}

}  // namespace

StatusOr<v1::SyncReply> KubernetesExecutor::Sync(const v1::SyncRequest& request,
                                                 const std::string& bearer) {
  const AttemptKey key = KeyOfRequest(request);
  if (!ValidateKey(key).ok()) return NotCurrent();
  ASSIGN_OR_RETURN(const std::string id, Identify(key, request.token(), bearer));
  ASSIGN_OR_RETURN(Mirror::ApplyResult taken,
                   mirror_.Apply(key, request, request.state().complete()));
  if (!taken.trouble.empty()) {
    Log(LogLevel::kWarning, "a file of an attempt is not kept",
        {{"attempt", AttemptName(key)}, {"trouble", taken.trouble}});
  }
  v1::SyncReply reply;
  bool news = false;
  bool ending = false;
  {
    std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(Admit(key, id));  // it may have ended meanwhile
    PodAttempt& attempt = attempts_.at(key);
    attempt.heard = options_.clock->Monotonic();
    if (request.has_state()) news = ApplyPodState(request.state(), attempt) || attempt.unsaved;
    attempt.unsaved = news;
    ending = attempt.over || attempt.stop;
    AcknowledgeRequest(attempt);
    FillReply(attempt, reply);
  }
  for (v1::FileHave& have : taken.have) *reply.add_files() = std::move(have);
  if (news) {
    // Before the answer: what was acknowledged is not told again.
    RETURN_IF_ERROR(SaveStateRecord(layout_.Paths(key).dir, request.state()));
    std::unique_lock lock(mutex_);
    const auto found = attempts_.find(key);
    if (found != attempts_.end()) found->second.unsaved = false;
    lock.unlock();
    if (options_.on_change) options_.on_change(key.trial.experiment);
  }
  // That it lives is all that most requests of many sidecars tell, and the agenda counts on that.
  if (news || ending) Examine(key, nullptr);
  return reply;
}

// The id of the attempt that the caller is of. Pods of version 0.1 were given their attempt's
// token; since then they show their own, which the API server knows.
StatusOr<std::string> KubernetesExecutor::Identify(const AttemptKey& key, const std::string& token,
                                                   const std::string& bearer) {
  if (!token.empty()) {
    std::lock_guard lock(mutex_);
    const std::string id = AttemptId(key, token);
    RETURN_IF_ERROR(Admit(key, id));
    return id;
  }
  std::string id;
  const std::string pod = PodTokenReviewer::ClaimedPod(bearer);
  {
    std::lock_guard lock(mutex_);
    const auto found = attempts_.find(key);
    if (found != attempts_.end()) id = found->second.id;
    RETURN_IF_ERROR(Admit(key, id));
    // What is not seen yet may be a moment away; what is not there is not asked about.
    if (pod.empty()) return NotCurrent();
    if (!IsItsPod(found->second, pod)) return absl::UnavailableError("not ready yet; try again");
  }
  RETURN_IF_ERROR(token_reviewer_.Check(bearer, key.trial.experiment.ns, pod));
  return id;
}

// Whether the pod was made for the attempt's own object: labels alone prove nothing.
bool KubernetesExecutor::IsItsPod(const PodAttempt& attempt, const std::string& uid) const {
  if (attempt.uid.empty()) return false;
  for (const Json& pod : view_.PodsOf(attempt.key)) {
    if (UidOf(pod) != uid) continue;
    if (uid == attempt.uid) return true;
    const Json& owner = ItemBy(At(pod, {"metadata", "ownerReferences"}), "uid", attempt.uid);
    if (attempt.ref.resource.kind == Jobs().kind) return !owner.is_null();
    return !owner.is_null() || AnnotationOf(pod, kPodAttemptIdAnnotation) == attempt.id;
  }
  return false;
}

// An attempt of an experiment that has not been looked at yet may still be adopted: its sidecar is
// told to wait, not to end.
Status KubernetesExecutor::Admit(const AttemptKey& key, const std::string& id) const {
  const auto found = attempts_.find(key);
  if (found != attempts_.end()) {
    if (!SameSecret(found->second.id, id) || found->second.ended()) return NotCurrent();
    return absl::OkStatus();
  }
  const absl::Duration age = options_.clock->Monotonic() - began_;
  const bool may_be_adopted = owned_.count(key.trial.experiment) == 0 && age < timeouts_.settle;
  if (may_be_adopted || pending_starts_.count(key) > 0 || unconfirmed_.count(key) > 0) {
    return absl::UnavailableError("not ready yet; try again");
  }
  return NotCurrent();
}

absl::Duration KubernetesExecutor::Next() const {
  return std::max(timeouts_.sync,
                  absl::Seconds(static_cast<double>(attempts_.size()) / kSyncsPerSecond));
}

// In place of a wish before it.
void KubernetesExecutor::Ask(const std::string& reason, absl::Time deadline, PodAttempt& attempt) {
  if (attempt.recipe.instrumented) attempt.pending_request = {reason, deadline};
}

void KubernetesExecutor::AcknowledgeRequest(PodAttempt& attempt) {
  attempt.last_id = std::max(attempt.last_id, attempt.state.heeded());
  if (!attempt.pending_request || attempt.pending_request->id == 0) return;
  if (attempt.state.heeded() >= attempt.pending_request->id) attempt.pending_request.reset();
}

// Ids go on from what the sidecar has heeded before, also across a restart of ours.
void KubernetesExecutor::FillReply(PodAttempt& attempt, v1::SyncReply& reply) {
  const bool ending = attempt.stop || attempt.over;
  *reply.mutable_next() = ToProto(attempt.pending_request || ending ? kUrgentSyncInterval : Next());
  if (attempt.pending_request) {
    if (attempt.pending_request->id == 0) attempt.pending_request->id = ++attempt.last_id;
    reply.mutable_request()->set_id(attempt.pending_request->id);
    reply.mutable_request()->set_reason(attempt.pending_request->reason);
    *reply.mutable_request()->mutable_deadline() =
        shirabe::ToProto(attempt.pending_request->deadline);
  }
  FillPrunes(attempt, reply);
}

}  // namespace shirabe::trial
