// How attempts of the executor `kubernetes` end: what is still read of them, and how their pods are
// ended. What is then left in the cluster is for kubernetes_leave.cc.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "trial/control.h"
#include "trial/executors/kubernetes_executor.h"
#include "trial/kubernetes_actions.h"
#include "trial/last_words.h"

namespace shirabe::trial {
namespace {

constexpr int64_t kMostLog = 64 << 20;        // of a log that is read through the API server
constexpr int64_t kMostLastWords = 16 << 20;  // of a sidecar's
// A log is read again and again from its beginning: so much of it a second, and not more often.
constexpr double kLogBytesPerSecond = 1 << 20;
constexpr absl::Duration kBetweenLogs = absl::Seconds(3);

// An API server that is busy, or hangs, may answer later: without the rest a trial has no result.
bool IsPassing(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

// ---- the rest of what a program left ------------------------------------------------------------

void KubernetesExecutor::AwaitRest(const Scene& scene, PodAttempt& attempt) {
  if (!RestIsAwaited(scene, attempt)) {
    Conclude(*attempt.over, options_.clock->Now(), attempt);
    return;
  }
  if (attempt.reading_log) return;
  const absl::Duration now = options_.clock->Monotonic();
  const absl::Duration patience = attempt.over_at + times_.last_words;
  const bool sends = attempt.recipe.instrumented && !SidecarHasEnded(scene);
  if (sends && now < patience) return LookAgain(attempt, patience);
  attempt.reading_log = true;
  Do([this, key = attempt.key, pod = *scene.pod, recipe = attempt.recipe] {
    ReadRest(key, pod, recipe);
  });
}

// What the sidecar could not send, it has printed; what it could not even print, the program's own
// container may have.
void KubernetesExecutor::ReadRest(const AttemptKey& key, const Json& pod,
                                  const AttemptRecipe& recipe) {
  const Status words = recipe.instrumented ? TakeLastWords(key, pod) : absl::OkStatus();
  bool complete = false;
  {
    std::lock_guard lock(mutex_);
    const auto found = attempts_.find(key);
    if (found == attempts_.end()) return;
    complete = recipe.instrumented && found->second.state.complete();
  }
  const Status log = complete ? absl::OkStatus() : TakeLog(key, pod, recipe.primary_container);
  {
    std::lock_guard lock(mutex_);
    const auto found = attempts_.find(key);
    if (found == attempts_.end()) return;
    PodAttempt& attempt = found->second;
    attempt.reading_log = false;
    const absl::Duration now = options_.clock->Monotonic();
    const bool passing = IsPassing(words) || IsPassing(log);
    const bool again = passing && now < attempt.over_at + 3 * times_.last_words;
    attempt.rest_read = !again;
    if (again) LookAgain(attempt, now + times_.retry);
  }
  Examine(key, nullptr);
}

Status KubernetesExecutor::TakeLastWords(const AttemptKey& key, const Json& pod) {
  ASSIGN_OR_RETURN(const std::string log,
                   ReadLogOf(client_, pod, kSidecarContainer, kMostLastWords));
  for (const v1::SyncRequest& words : ParseLastWords(log)) {
    const auto taken = mirror_.Take(key, words, words.state().complete());
    if (!taken.ok() || !words.has_state()) continue;
    std::lock_guard lock(mutex_);
    const auto found = attempts_.find(key);
    if (found != attempts_.end()) TakeState(words.state(), found->second);
  }
  return absl::OkStatus();
}

// Adds what the copy of the log does not have yet. One that does not begin like the copy is of
// another writer, or was cut, and is left.
Status KubernetesExecutor::TakeLog(const AttemptKey& key, const Json& pod,
                                   const std::string& container) {
  ASSIGN_OR_RETURN(const std::string log, ReadLogOf(client_, pod, container, kMostLog));
  const auto copy = ReadFile(layout_.Paths(key).log, kMostLog);
  if (!copy.ok() && !absl::IsNotFound(copy.status())) return copy.status();
  const std::string& have = copy.ok() ? *copy : "";
  if (log.size() <= have.size() || log.compare(0, have.size(), have) != 0) return absl::OkStatus();
  return mirror_.AppendLog(key, log.substr(have.size()));
}

// Of a pod that has no sidecar, while it runs.
void KubernetesExecutor::FollowLog(const Scene& scene, PodAttempt& attempt) {
  if (!scene.pod || scene.pod_vanished || !attempt.sighting.placement.has_start_time()) return;
  const absl::Duration now = options_.clock->Monotonic();
  if (attempt.reading_log) return;
  if (now < attempt.log_at) return LookAgain(attempt, attempt.log_at);
  attempt.reading_log = true;
  Do([this, key = attempt.key, pod = *scene.pod, container = attempt.recipe.primary_container] {
    TakeLog(key, pod, container).IgnoreError();  // read again, at the latest at the end
    std::error_code error;
    const auto size = std::filesystem::file_size(layout_.Paths(key).log, error);
    {
      std::lock_guard lock(mutex_);
      const auto found = attempts_.find(key);
      if (found == attempts_.end()) return;
      found->second.reading_log = false;
      const absl::Duration pause = std::max(
          kBetweenLogs, absl::Seconds(error ? 0 : static_cast<double>(size) / kLogBytesPerSecond));
      found->second.log_at = options_.clock->Monotonic() + pause;
    }
    Examine(key, nullptr);
  });
}

// ---- ending it ----------------------------------------------------------------------------------

Status KubernetesExecutor::Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) {
  {
    std::lock_guard lock(mutex_);
    const auto starting = starting_.find(key);
    if (starting != starting_.end()) starting->second.stop = {why, grace};
    const auto found = attempts_.find(key);
    if (found == attempts_.end() || found->second.ended()) return absl::OkStatus();
    PodAttempt& attempt = found->second;
    const absl::Duration now = options_.clock->Monotonic();
    const absl::Duration kill_at = now + grace;
    if (attempt.stop && attempt.stop->kill_at <= kill_at) return absl::OkStatus();
    const bool listens = attempt.recipe.instrumented && attempt.heard &&
                         now - *attempt.heard < 2 * Next() && !attempt.stop;
    attempt.stop = {kill_at, listens ? std::min(now + times_.heed, kill_at) : now};
    Ask(ControlReason(why), options_.clock->Now() + grace, attempt);
  }
  Examine(key, nullptr);
  return absl::OkStatus();
}

// Its pods go, with what is left of the grace; the object stays until all of it is in the store,
// but where nothing runs, or an operator would start pods anew.
void KubernetesExecutor::EndPods(PodAttempt& attempt) {
  PodAttempt::Stop& stop = *attempt.stop;
  const absl::Duration now = options_.clock->Monotonic();
  if (attempt.wish && now < stop.delete_at) return LookAgain(attempt, stop.delete_at);
  stop.deleted = true;
  std::vector<Json> pods = view_.PodsOf(attempt.key);
  const bool object_too = pods.empty() || attempt.ref.resource.kind != Jobs().kind;
  const absl::Duration grace = std::max(absl::ZeroDuration(), stop.kill_at - now);
  Do([this, key = attempt.key, ref = attempt.ref, uid = attempt.uid, pods = std::move(pods),
      object_too, grace] {
    Status status;
    if (object_too) status.Update(DeleteObject(client_, ref, uid));
    for (const Json& pod : pods) status.Update(EndPod(client_, pod, grace));
    {
      std::lock_guard lock(mutex_);
      const auto found = attempts_.find(key);
      if (found == attempts_.end() || !found->second.stop) return;
      PodAttempt& ended = found->second;
      if (!status.ok()) {
        ended.stop->deleted = false;
        ended.stop->delete_at = options_.clock->Monotonic() + times_.retry;
        ended.wish.reset();
        LookAgain(ended, ended.stop->delete_at);
      }
    }
    Examine(key, nullptr);
  });
}

}  // namespace shirabe::trial
