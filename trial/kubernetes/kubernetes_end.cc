// How attempts of the executor `kubernetes` end: what is still read of them, and how their pods are
// ended. What is then left in the cluster is for kubernetes_leave.cc.
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "trial/control.h"
#include "trial/kubernetes/kubernetes_actions.h"
#include "trial/kubernetes/kubernetes_executor.h"
#include "trial/log_file.h"
#include "trial/pod/last_words.h"

namespace shirabe::trial {
namespace {

constexpr int64_t kMostLog = 64 << 20;        // of a log that is read through the API server
constexpr int64_t kMostLastWords = 16 << 20;  // of a sidecar's
// A log is read again and again from its beginning: so much of it a second.
constexpr double kLogBytesPerSecond = 1 << 20;

// An API server that is busy, or hangs, may answer later: without the rest a trial has no result.
bool IsPassing(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

// So much of the end of a copy tells where a log goes on from it.
constexpr int64_t kJoint = 4 << 10;
constexpr std::string_view kMissing =
    "\nshirabe: output may be missing here: the cluster has begun a new log\n";

// How much of `log` the copy has, which is `copied` bytes long and ends with `joint`; npos if the
// two do not meet. A kubelet shows only the file that it writes now, so after a rotation (by
// default at 10 MiB) the log begins later than the copy.
size_t KnownOf(const std::string& log, int64_t copied, std::string joint) {
  const bool short_one = static_cast<int64_t>(joint.size()) < kJoint;
  size_t before = static_cast<size_t>(copied) - joint.size();
  const size_t begun = joint.rfind(kMissing);
  if (begun != joint.npos) {  // then this log was, after that line
    joint.erase(0, begun + kMissing.size());
    before = 0;
  }
  if (log.size() >= before && log.compare(before, joint.size(), joint) == 0) {
    return before + joint.size();
  }
  const size_t at = short_one || begun != joint.npos ? log.npos : log.find(joint);
  return at == log.npos ? at : at + joint.size();
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
  const Status log = complete ? absl::OkStatus() : TakeLog(key, pod, recipe);
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

// Adds what the copy of the log does not have yet. If the two do not meet, the copy that a sidecar
// sent stays as it is: it is of the program's file.
Status KubernetesExecutor::TakeLog(const AttemptKey& key, const Json& pod,
                                   const AttemptRecipe& recipe) {
  ASSIGN_OR_RETURN(std::string log, ReadLogOf(client_, pod, recipe.primary_container, kMostLog));
  const std::string path = layout_.Paths(key).log;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const int64_t copied = error ? 0 : static_cast<int64_t>(size);
  std::string joint;
  if (copied > 0) {
    ASSIGN_OR_RETURN(LogPiece piece, ReadLog(path, std::max<int64_t>(0, copied - kJoint), kJoint));
    joint = std::move(piece.text);
  }
  const size_t known = KnownOf(log, copied, joint);
  if (known != log.npos) {
    log.erase(0, known);
  } else if (recipe.instrumented || log.empty()) {
    return absl::OkStatus();
  } else {
    log.insert(0, kMissing);
  }
  return log.empty() ? absl::OkStatus() : mirror_.AppendLog(key, log);
}

// Of a pod that has no sidecar, while it runs.
void KubernetesExecutor::FollowLog(const Scene& scene, PodAttempt& attempt) {
  if (!scene.pod || scene.pod_vanished || !attempt.sighting.placement.has_start_time()) return;
  const absl::Duration now = options_.clock->Monotonic();
  if (attempt.reading_log) return;
  if (now < attempt.log_at) return LookAgain(attempt, attempt.log_at);
  attempt.reading_log = true;
  Do([this, key = attempt.key, pod = *scene.pod, recipe = attempt.recipe] {
    TakeLog(key, pod, recipe).IgnoreError();  // read again, at the latest at the end
    std::error_code error;
    const auto size = std::filesystem::file_size(layout_.Paths(key).log, error);
    {
      std::lock_guard lock(mutex_);
      const auto found = attempts_.find(key);
      if (found == attempts_.end()) return;
      found->second.reading_log = false;
      const absl::Duration pause = std::max(
          times_.logs, absl::Seconds(error ? 0 : static_cast<double>(size) / kLogBytesPerSecond));
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
