// What the executor `kubernetes` and the sidecars of its attempts say to each other.
#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/timestamp.h"
#include "trial/executors/kubernetes_executor.h"
#include "trial/kubernetes_record.h"
#include "trial/records.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kSoon = absl::Milliseconds(250);
constexpr double kSyncsPerSecond = 500;  // of all sidecars together
constexpr int kPrunesAtOnce = 100;

AttemptKey KeyOfRequest(const v1::SyncRequest& request) {
  return {{ExperimentKeyOf(request), request.trial()}, request.attempt()};
}

bool SameSecret(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Status NotCurrent() {
  return absl::PermissionDeniedError("the attempt is not current, or the token is not its own");
}

bool SameCheckpoint(const v1::Checkpoint& a, const v1::Checkpoint& b) {
  return a.trial() == b.trial() && a.attempt() == b.attempt() && a.step() == b.step();
}

}  // namespace

StatusOr<v1::SyncReply> KubernetesExecutor::Sync(const v1::SyncRequest& request) {
  const AttemptKey key = KeyOfRequest(request);
  if (!ValidateKey(key).ok()) return NotCurrent();
  const std::string id = AttemptId(key, request.token());
  {
    std::lock_guard lock(mutex_);
    RETURN_IF_ERROR(Admit(key, id));
  }
  ASSIGN_OR_RETURN(Mirror::Taken taken, mirror_.Take(key, request, request.state().complete()));
  if (!taken.trouble.empty()) {
    Log(LogLevel::kWarning, "something of an attempt is not kept",
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
    if (request.has_state()) news = TakeState(request.state(), attempt) || attempt.unsaved;
    attempt.unsaved = news;
    ending = attempt.over || attempt.stop;
    Heed(attempt);
    Hand(attempt, reply);
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

// An attempt of an experiment that nobody has looked at yet may still be adopted: its sidecar is
// told to wait, not to end.
Status KubernetesExecutor::Admit(const AttemptKey& key, const std::string& id) const {
  const auto found = attempts_.find(key);
  if (found != attempts_.end()) {
    if (!SameSecret(found->second.id, id) || found->second.ended()) return NotCurrent();
    return absl::OkStatus();
  }
  const absl::Duration age = options_.clock->Monotonic() - began_;
  const bool may_be_adopted = owned_.count(key.trial.experiment) == 0 && age < times_.settle;
  if (may_be_adopted || starting_.count(key) > 0 || doubtful_.count(key) > 0) {
    return absl::UnavailableError("not ready yet; try again");
  }
  return NotCurrent();
}

absl::Duration KubernetesExecutor::Next() const {
  return std::max(times_.sync,
                  absl::Seconds(static_cast<double>(attempts_.size()) / kSyncsPerSecond));
}

// In place of a wish before it.
void KubernetesExecutor::Ask(const std::string& reason, absl::Time deadline, PodAttempt& attempt) {
  if (attempt.recipe.instrumented) attempt.wish = {reason, deadline};
}

void KubernetesExecutor::Heed(PodAttempt& attempt) {
  attempt.last_id = std::max(attempt.last_id, attempt.state.heeded());
  if (!attempt.wish || attempt.wish->id == 0) return;
  if (attempt.state.heeded() >= attempt.wish->id) attempt.wish.reset();
}

// Ids go on from what the sidecar has heeded before, also across a restart of ours.
void KubernetesExecutor::Hand(PodAttempt& attempt, v1::SyncReply& reply) {
  const bool ending = attempt.stop || attempt.over;
  *reply.mutable_next() = ToProto(attempt.wish || ending ? kSoon : Next());
  if (attempt.wish) {
    if (attempt.wish->id == 0) attempt.wish->id = ++attempt.last_id;
    reply.mutable_request()->set_id(attempt.wish->id);
    reply.mutable_request()->set_reason(attempt.wish->reason);
    *reply.mutable_request()->mutable_deadline() = shirabe::ToProto(attempt.wish->deadline);
  }
  const auto found = prunes_.find(attempt.key.trial.experiment);
  if (found == prunes_.end()) return;
  auto& [scope, queue] = found->second;
  const auto done = [&](const v1::Checkpoint& checkpoint) {
    const auto& pruned = attempt.state.pruned();
    return std::any_of(pruned.begin(), pruned.end(), [&](const v1::Checkpoint& other) {
      return SameCheckpoint(checkpoint, other);
    });
  };
  queue.erase(std::remove_if(queue.begin(), queue.end(), done), queue.end());
  for (const v1::Checkpoint& checkpoint : queue) {
    if (reply.prune_size() >= kPrunesAtOnce) break;
    if (scope != Scope::kExperiment && checkpoint.trial() != attempt.key.trial.number) continue;
    if (scope == Scope::kAttempt && checkpoint.attempt() != attempt.key.number) continue;
    *reply.add_prune() = checkpoint;
  }
}

// Where checkpoints lie is the same for all attempts of an experiment.
void KubernetesExecutor::NoteScope(const AttemptRequest& request) {
  const v1::CheckpointVolume& volume = request.cluster.volume;
  std::lock_guard lock(mutex_);
  Scope& scope = prunes_[request.key.trial.experiment].scope;
  scope = Scope::kAttempt;
  if (!volume.size().empty()) scope = Scope::kTrial;
  if (!volume.claim().empty() || !volume.host_path().empty()) scope = Scope::kExperiment;
}

// By a sidecar that reaches the volume, now or once there is one.
void KubernetesExecutor::Prune(const v1::Checkpoint& checkpoint) {
  std::lock_guard lock(mutex_);
  std::vector<v1::Checkpoint>& queue = prunes_[ExperimentKeyOf(checkpoint)].queue;
  for (const v1::Checkpoint& queued : queue) {
    if (SameCheckpoint(queued, checkpoint)) return;
  }
  queue.push_back(checkpoint);
}

}  // namespace shirabe::trial
