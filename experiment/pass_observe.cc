// What happened to the open attempts since the last pass, and their metrics.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/timestamp.h"
#include "experiment/attempt_request.h"
#include "experiment/observation_ingest.h"
#include "experiment/pass_steps.h"
#include "experiment/state/budget.h"

namespace shirabe::experiment {
namespace {

using trial::AttemptStatus;

constexpr absl::Duration kMinCollectInterval = absl::Milliseconds(250);
constexpr absl::Duration kMaxCollectInterval = absl::Seconds(1);
constexpr absl::Duration kUnreadableTimeout = absl::Seconds(30);
constexpr absl::Duration kStrayPollInterval = absl::Milliseconds(400);

// Where it runs, and at what price, may be known later than that it runs.
void RecordPlacement(const TrialEdit& edit, const v1::Placement& placement) {
  const v1::Attempt& attempt = edit.trial.attempt();
  if (attempt.placements_size() != 1 || IsPlaced(attempt) || !IsPlaced(placement)) return;
  *edit.trial.mutable_attempt().mutable_placements(0) = placement;
}

Status RecordRunning(const TrialEdit& edit, const AttemptStatus& observed) {
  AttemptMemory& memory = edit.trial.mutable_memory();
  if (memory.phase != AttemptPhase::kExited) memory.Enter(AttemptPhase::kRunning);
  if (!memory.running_since) {
    memory.running_since = memory.saved_at = edit.in.monotonic;
    const absl::Duration by_wall = edit.in.now - FromProto(observed.placement.start_time());
    memory.ran_before = std::max(absl::ZeroDuration(), observed.ran.value_or(by_wall));
  }
  if (edit.trial.attempt().state() == v1::ATTEMPT_RUNNING) {
    RecordPlacement(edit, observed.placement);
    if (!edit.trial.attempt().begin_untold() || !observed.begin_known) return absl::OkStatus();
    edit.trial.mutable_attempt().clear_begin_untold();
    return RecordResume(edit, observed);
  }
  v1::Attempt& attempt = edit.trial.mutable_attempt();
  if (observed.begin_known) {
    RETURN_IF_ERROR(RecordResume(edit, observed));
  } else {
    attempt.set_begin_untold(attempt.number() > 1 || edit.trial.trial().has_parent());
  }
  attempt.set_state(v1::ATTEMPT_RUNNING);
  *attempt.mutable_start_time() = observed.placement.start_time();
  *attempt.add_placements() = observed.placement;
  v1::Trial& trial = edit.trial.mutable_trial();
  if (!trial.has_start_time()) *trial.mutable_start_time() = attempt.start_time();
  trial.clear_waiting();
  edit.trial.SetPhase(v1::TRIAL_RUNNING);
  return absl::OkStatus();
}

// Its object exists, its program does not run yet; or, after a restart, it is not known whether it
// does.
void RecordPending(const TrialEdit& edit, const AttemptStatus& observed) {
  AttemptMemory& memory = edit.trial.mutable_memory();
  if (memory.phase == AttemptPhase::kRecorded) memory.Enter(AttemptPhase::kStarted);
  if (!observed.waiting.empty()) memory.seen_pending = true;
  if (edit.trial.attempt().state() != v1::ATTEMPT_RUNNING) SetWaitReason(edit, observed.waiting);
}

// It runs, and nothing is heard of what it does, or it is asked to end and may not be ended: said
// once, and as long as it lasts.
void RecordTrouble(const TrialEdit& edit, const std::string& why) {
  if (edit.trial.trial().waiting() == why) return;
  edit.trial.mutable_trial().set_waiting(why);
  if (why.empty()) return;
  const char* reason = edit.trial.attempt().has_stop() ? "StopRefused" : "SidecarUnreachable";
  edit.delta.AddEvent(edit.trial.trial(), true, reason, why);
}

// What a program put where its metrics should be ends its attempt, and nothing else: at once where
// it can never be read, after a while where the disk may answer again. True if it is given up.
bool FailUnreadable(const TrialEdit& edit, const Status& unreadable) {
  const bool never = absl::IsInvalidArgument(unreadable) || absl::IsPermissionDenied(unreadable);
  std::optional<absl::Duration>& since = edit.trial.mutable_memory().unreadable_since;
  if (!since) since = edit.in.monotonic;
  if (!never && edit.in.monotonic - *since < kUnreadableTimeout) return false;
  RequestStop(edit, never ? v1::APP_ERROR : v1::INFRASTRUCTURE, Message(unreadable));
  return true;
}

void TrimLater(const TrialEdit& edit, const metrics::Source& source) {
  auto log = FindLongLog(edit, source);
  if (!log) return;
  edit.trial.mutable_attempt();  // its cursor is to be written: an old one may not find its place
  edit.delta.effects().trims.push_back(*std::move(log));
}

// Looks less often at trials that have nothing to say, not at all where it is known whether they
// have, and never at those that a caller runs, which reports what there is. False if more is there
// than was read.
StatusOr<bool> CollectRunning(const TrialEdit& edit, const AttemptStatus& observed) {
  if (edit.in.state.experiment().spec().shirabe().ask_and_tell()) return true;
  const auto& version = observed.files_version;
  if (version && version == edit.trial.memory().collected_version) return true;
  AttemptMemory& memory = edit.trial.mutable_memory();
  const absl::Duration now = edit.in.monotonic;
  if (now < memory.collect_at) {
    edit.delta.Requeue(memory.collect_at - now);
    return true;
  }
  const metrics::Source source = SourceOf(edit.in, edit.trial.trial(), edit.trial.attempt());
  ASSIGN_OR_RETURN(const IngestResult ingested, Ingest(edit, source));
  if (ingested.unreadable.ok()) {
    memory.unreadable_since.reset();
    TrimLater(edit, source);
    memory.collect_interval =
        ingested.has_new ? kMinCollectInterval
                         : std::min(std::max(memory.collect_interval * 1.5, kMinCollectInterval),
                                    kMaxCollectInterval);
    if (ingested.more) memory.collect_interval = absl::ZeroDuration();
  } else {
    FailUnreadable(edit, ingested.unreadable);
    memory.collect_interval = kMaxCollectInterval;
  }
  memory.collect_at = now + memory.collect_interval;
  if (version && ingested.unreadable.ok() && !ingested.more) {
    memory.collected_version = version;
  } else {
    edit.delta.Requeue(memory.collect_interval);
  }
  return !ingested.more;
}

// True once everything the program left has been read. A large rest is read over several passes,
// each of which commits, so that memory stays bounded.
StatusOr<bool> CollectRemaining(const TrialEdit& edit) {
  metrics::Source source = SourceOf(edit.in, edit.trial.trial(), edit.trial.attempt());
  source.ended = true;
  ASSIGN_OR_RETURN(const IngestResult ingested, Ingest(edit, source));
  if (!ingested.unreadable.ok()) return FailUnreadable(edit, ingested.unreadable);
  TrimLater(edit, source);
  return !ingested.more;
}

Status ObserveRunning(const TrialEdit& edit, const AttemptStatus& observed) {
  if (!observed.placement.has_start_time()) {
    RecordPending(edit, observed);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(RecordRunning(edit, observed));
  RecordTrouble(edit, observed.waiting);
  // What it reports counts on from there. A pod tells both at once.
  if (edit.trial.attempt().begin_untold()) return absl::OkStatus();
  // What it reported before it saved is to be known when the save is recorded.
  if (HasNewCheckpoint(edit.trial, observed)) {
    edit.trial.mutable_memory().collect_at = absl::ZeroDuration();
  }
  ASSIGN_OR_RETURN(const bool complete, CollectRunning(edit, observed));
  return complete ? RecordCheckpoints(edit, observed) : absl::OkStatus();
}

Status ObserveEnded(const TrialEdit& edit, const AttemptStatus& observed) {
  edit.trial.mutable_memory().Enter(AttemptPhase::kExited);
  if (observed.placement.has_start_time()) RETURN_IF_ERROR(RecordRunning(edit, observed));
  ASSIGN_OR_RETURN(const bool complete, CollectRemaining(edit));
  if (!complete) {
    edit.delta.Requeue(edit.trial.memory().unreadable_since ? kMinCollectInterval
                                                            : absl::ZeroDuration());
    return absl::OkStatus();
  }
  // It has said something, and never where it began: from the beginning, for all that is known.
  if (edit.trial.attempt().begin_untold() && edit.trial.attempt().rows() > 0) {
    edit.trial.mutable_attempt().clear_begin_untold();
    RETURN_IF_ERROR(RecordResume(edit, observed));
  }
  RETURN_IF_ERROR(RecordCheckpoints(edit, observed));
  FinishAttempt(edit, observed);
  return absl::OkStatus();
}

// The executor knows nothing of it.
void ObserveMissing(const TrialEdit& edit) {
  const v1::Attempt& attempt = edit.trial.attempt();
  if (attempt.state() != v1::ATTEMPT_RUNNING && !attempt.has_stop()) {
    // To be started; again, if an earlier start is not to be seen.
    edit.trial.mutable_memory().Enter(AttemptPhase::kRecorded);
    return;
  }
  // It should run, or end; a Start whose answer was lost may have taken effect. Look for it before
  // believing that there is none.
  edit.delta.effects().adopt.push_back(attempt);
  edit.delta.Requeue(absl::ZeroDuration());
}

// The intent to start it was stored, and no process of it was ever seen.
bool NeverRan(const v1::Attempt& attempt, const AttemptStatus& observed) {
  return observed.state == AttemptStatus::State::kLost && attempt.state() != v1::ATTEMPT_RUNNING &&
         observed.placement.pid() == 0 && !attempt.has_stop();
}

// One that is no longer current still writes: counted once for each.
void RecordFencedWrite(const AttemptKey& stray, Delta& delta) {
  delta.mutable_memory().strays.insert(stray);
  v1::ShirabeStatus& status = delta.mutable_shirabe();
  status.set_refused_writes(status.refused_writes() + 1);
}

}  // namespace

metrics::Source SourceOf(const PassInput& in, const v1::Trial& trial, const v1::Attempt& attempt) {
  const AttemptKey key = KeyOf(in.state, attempt);
  metrics::Source source = SourceFor(in.state, {trial, attempt}, in.options.executor->Paths(key),
                                     in.options.working_dir);
  source.now = in.now;
  return source;
}

Delta EndPauses(const PassInput& in) {
  Delta delta(in.state, in.now);
  delta.mutable_memory().algorithm.wait.since.reset();
  for (const auto& [number, active] : in.state.active()) {
    AttemptMemory& memory = delta.Edit(active).mutable_memory();
    memory.start_again = absl::ZeroDuration();
    if (memory.phase == AttemptPhase::kRecorded) memory.wait.since.reset();
  }
  return delta;
}

StatusOr<Delta> ObserveAttempt(const PassInput& in, const ActiveTrial& active,
                               const AttemptStatus* observed) {
  Delta delta(in.state, in.now);
  const TrialEdit edit{in, delta, delta.Edit(active)};
  if (observed == nullptr) {
    ObserveMissing(edit);
  } else if (observed->state == AttemptStatus::State::kRunning) {
    RETURN_IF_ERROR(ObserveRunning(edit, *observed));
  } else if (NeverRan(edit.trial.attempt(), *observed)) {
    delta.effects().forget_lost.push_back(observed->key);
    edit.trial.mutable_memory().Enter(AttemptPhase::kRecorded);
  } else {
    RETURN_IF_ERROR(ObserveEnded(edit, *observed));
  }
  return delta;
}

// Nothing of it is read, and it is ended.
Delta ObserveStray(const PassInput& in, const AttemptStatus& observed) {
  Delta delta(in.state, in.now);
  if (observed.state != AttemptStatus::State::kRunning) {
    delta.effects().forget.push_back(observed.key);
    return delta;
  }
  if (!in.state.memory().strays.contains(observed.key)) {
    Log(LogLevel::kWarning, "a replaced attempt still runs; its writes are refused",
        {{"attempt", AttemptName(observed.key)}});
    RecordFencedWrite(observed.key, delta);
  }
  delta.effects().stop_strays.push_back(observed.key);
  delta.Requeue(kStrayPollInterval);
  return delta;
}

void SetWaitReason(const TrialEdit& edit, const std::string& why) {
  if (edit.trial.trial().waiting() == why) return;
  if (!edit.trial.mutable_memory().wait.MayRecordReason(edit.in.monotonic)) return;
  edit.trial.mutable_trial().set_waiting(why);
}

}  // namespace shirabe::experiment
