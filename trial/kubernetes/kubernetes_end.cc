// How attempts of the executor `kubernetes` end: what is still read of them, and how their pods are
// ended. What is then left in the cluster is for kubernetes_cleanup.cc.
#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_io.h"
#include "base/log.h"
#include "trial/control_file.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/kubernetes_executor.h"
#include "trial/log_file.h"
#include "trial/pod/final_sync_log.h"

namespace shirabe::trial {
namespace {

constexpr int64_t kMaxLogBytes = 64 << 20;   // of a log that is read through the API server
constexpr int64_t kMaxFinalSync = 16 << 20;  // of a sidecar's
// A log is read again and again from its beginning: so much of it a second.
constexpr double kLogBytesPerSecond = 1 << 20;

// An API server that is busy, or hangs, may answer later: without the rest a trial has no result.
bool IsPassing(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

// So much of the end of a copy tells where a log goes on from it.
constexpr int64_t kLogOverlapBytes = 4 << 10;
constexpr std::string_view kGapNotice =
    "\nshirabe: output may be missing here: the cluster has begun a new log\n";

// How much of `log` the copy has, which is `copied` bytes long and ends with `joint`; npos if the
// two do not meet. A kubelet shows only the file that it writes now, so after a rotation (by
// default at 10 MiB) the log begins later than the copy.
size_t KnownOf(const std::string& log, int64_t copied, std::string joint) {
  const bool short_one = static_cast<int64_t>(joint.size()) < kLogOverlapBytes;
  size_t before = static_cast<size_t>(copied) - joint.size();
  const size_t begun = joint.rfind(kGapNotice);
  if (begun != joint.npos) {  // then this log was, after that line
    joint.erase(0, begun + kGapNotice.size());
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

void KubernetesExecutor::AwaitRemainder(const AttemptSnapshot& snapshot, PodAttempt& attempt) {
  if (!AwaitsRemainder(snapshot, attempt)) {
    RecordEnd(*attempt.over, options_.clock->Now(), attempt);
    return;
  }
  if (attempt.reading_log) return;
  const absl::Duration now = options_.clock->Monotonic();
  const absl::Duration patience = attempt.over_at + timeouts_.final_sync;
  const bool sends = attempt.recipe.instrumented && !SidecarHasEnded(snapshot);
  if (sends && now < patience) return ScheduleCheck(attempt, patience);
  attempt.reading_log = true;
  Do([this, key = attempt.key, pod = *snapshot.pod, recipe = attempt.recipe] {
    ReadRemainder(key, pod, recipe);
  });
}

// What the sidecar could not send, it has printed; what it could not even print, the program's own
// container may have.
void KubernetesExecutor::ReadRemainder(const AttemptKey& key, const Json& pod,
                                       const AttemptRecipe& recipe) {
  const Status words = recipe.instrumented ? ApplyFinalSync(key, pod) : absl::OkStatus();
  bool complete = false;
  {
    std::lock_guard lock(mutex_);
    const auto found = attempts_.find(key);
    if (found == attempts_.end()) return;
    complete = recipe.instrumented && found->second.state.complete();
  }
  const Status log = complete ? absl::OkStatus() : FetchLog(key, pod, recipe);
  {
    std::lock_guard lock(mutex_);
    const auto found = attempts_.find(key);
    if (found == attempts_.end()) return;
    PodAttempt& attempt = found->second;
    attempt.reading_log = false;
    const absl::Duration now = options_.clock->Monotonic();
    const bool passing = IsPassing(words) || IsPassing(log);
    const bool again = passing && now < attempt.over_at + 3 * timeouts_.final_sync;
    attempt.remainder_read = !again;
    if (again) ScheduleCheck(attempt, now + timeouts_.retry);
  }
  Examine(key, nullptr);
}

Status KubernetesExecutor::ApplyFinalSync(const AttemptKey& key, const Json& pod) {
  ASSIGN_OR_RETURN(const std::string log,
                   ReadLogOf(client_, pod, kSidecarContainer, kMaxFinalSync));
  for (const v1::SyncRequest& words : ParseFinalSync(log)) {
    const auto taken = mirror_.Apply(key, words, words.state().complete());
    if (!taken.ok() || !words.has_state()) continue;
    std::lock_guard lock(mutex_);
    const auto found = attempts_.find(key);
    if (found != attempts_.end()) ApplyPodState(words.state(), found->second);
  }
  return absl::OkStatus();
}

// Adds what the copy of the log does not have yet. If the two do not meet, the copy that a sidecar
// sent stays as it is: it is of the program's file.
Status KubernetesExecutor::FetchLog(const AttemptKey& key, const Json& pod,
                                    const AttemptRecipe& recipe) {
  ASSIGN_OR_RETURN(std::string log,
                   ReadLogOf(client_, pod, recipe.primary_container, kMaxLogBytes));
  const std::string path = layout_.Paths(key).log;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const int64_t copied = error ? 0 : static_cast<int64_t>(size);
  std::string joint;
  if (copied > 0) {
    ASSIGN_OR_RETURN(LogPiece piece, ReadLog(path, std::max<int64_t>(0, copied - kLogOverlapBytes),
                                             kLogOverlapBytes));
    joint = std::move(piece.text);
  }
  const size_t known = KnownOf(log, copied, joint);
  if (known != log.npos) {
    log.erase(0, known);
  } else if (recipe.instrumented || log.empty()) {
    return absl::OkStatus();
  } else {
    log.insert(0, kGapNotice);
  }
  return log.empty() ? absl::OkStatus() : mirror_.AppendLog(key, log);
}

// Of a pod that has no sidecar, while it runs.
void KubernetesExecutor::FollowLog(const AttemptSnapshot& snapshot, PodAttempt& attempt) {
  if (!snapshot.pod || snapshot.pod_vanished || !attempt.observed.placement.has_start_time())
    return;
  const absl::Duration now = options_.clock->Monotonic();
  if (attempt.reading_log) return;
  if (now < attempt.log_at) return ScheduleCheck(attempt, attempt.log_at);
  attempt.reading_log = true;
  Do([this, key = attempt.key, pod = *snapshot.pod, recipe = attempt.recipe] {
    FetchLog(key, pod, recipe).IgnoreError();  // read again, at the latest at the end
    std::error_code error;
    const auto size = std::filesystem::file_size(layout_.Paths(key).log, error);
    {
      std::lock_guard lock(mutex_);
      const auto found = attempts_.find(key);
      if (found == attempts_.end()) return;
      found->second.reading_log = false;
      const absl::Duration pause =
          std::max(timeouts_.logs,
                   absl::Seconds(error ? 0 : static_cast<double>(size) / kLogBytesPerSecond));
      found->second.log_at = options_.clock->Monotonic() + pause;
    }
    Examine(key, nullptr);
  });
}

// ---- ending it ----------------------------------------------------------------------------------

Status KubernetesExecutor::Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) {
  {
    std::lock_guard lock(mutex_);
    const auto starting = pending_starts_.find(key);
    if (starting != pending_starts_.end()) starting->second.stop = {why, grace};
    const auto found = attempts_.find(key);
    if (found == attempts_.end() || found->second.ended()) return absl::OkStatus();
    PodAttempt& attempt = found->second;
    const absl::Duration now = options_.clock->Monotonic();
    const absl::Duration kill_at = now + grace;
    if (attempt.stop && attempt.stop->kill_at <= kill_at) return absl::OkStatus();
    const bool listens = attempt.recipe.instrumented && attempt.heard &&
                         now - *attempt.heard < 2 * Next() && !attempt.stop;
    attempt.stop = {kill_at, listens ? std::min(now + timeouts_.stop_ack_timeout, kill_at) : now};
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
  if (attempt.pending_request && now < stop.delete_at)
    return ScheduleCheck(attempt, stop.delete_at);
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
        ended.stop->delete_at = options_.clock->Monotonic() + timeouts_.retry;
        ended.pending_request.reset();
        ScheduleCheck(ended, ended.stop->delete_at);
      }
    }
    Examine(key, nullptr);
  });
}

}  // namespace shirabe::trial
