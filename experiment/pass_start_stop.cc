// What is done about open attempts once their records are committed, and what is remembered of it.
#include <algorithm>
#include <utility>

#include "base/timestamp.h"
#include "db/bulk_leases.h"
#include "db/commit_rules.h"
#include "experiment/attempt_request.h"
#include "experiment/observation_ingest.h"
#include "experiment/pass_follow_up.h"
#include "experiment/reconcile_pass.h"
#include "trial/start_error.h"

namespace shirabe::experiment {
namespace {

constexpr int64_t kRowsRemovedAtOnce = 10'000;
constexpr absl::Duration kSlowStartThreshold = absl::Milliseconds(50);
constexpr absl::Duration kStopPollInterval = absl::Milliseconds(250);  // of what was asked to end
constexpr absl::Duration kVerifyRetryInterval =
    absl::Milliseconds(100);  // a checkpoint is being verified
constexpr absl::Duration kPendingPollInterval = absl::Milliseconds(400);  // of what is on its way

// What keeps every trial of an experiment from starting, and only an administrator can change.
struct StartObstacle {
  bool (*is)(const Status& started);
  const char* condition;
  const char* reason;
  const char* event;
  const char* over_event;
  const char* over;
};

template <const char* kEventReason>
bool HasEventReason(const Status& started) {
  return trial::EventReasonOf(started) == kEventReason;
}

constexpr StartObstacle kObstacles[] = {
    {absl::IsUnimplemented, "TrialKindKnown", "NoSuchKind", "TrialKindMissing", "TrialKindFound",
     "the cluster knows the kind of its trials by now"},
    {HasEventReason<trial::kAccountRefused>, "TrialAccountAllowed", "MissingRight",
     trial::kAccountRefused, "TrialAccountAllowed",
     "the namespace's account may make its trials by now"},
    {HasEventReason<trial::kPoolMissing>, "PoolsKnown", "NoSuchPool", trial::kPoolMissing,
     "PoolsKnown", "the controller has the pools by now"},
};

// Said once, and taken back with the first start. The status is False, so that it is never the
// current condition.
void SayWhetherInTheWay(const PassInput& in, const Status& started, const StartObstacle& obstacle,
                        Delta& delta) {
  const auto& conditions = in.state.experiment().status().conditions();
  const auto is_ours = [&](const v1::Condition& one) { return one.type() == obstacle.condition; };
  const bool said = std::any_of(conditions.begin(), conditions.end(), is_ours);
  const bool in_the_way = obstacle.is(started);
  if (said == in_the_way || (!in_the_way && !started.ok())) return;
  auto& changed = *delta.mutable_status().mutable_conditions();
  if (said) {
    changed.erase(std::remove_if(changed.begin(), changed.end(), is_ours), changed.end());
    delta.AddEvent(false, obstacle.over_event, obstacle.over);
    return;
  }
  v1::Condition& condition = *changed.Add();
  condition.set_type(obstacle.condition);
  condition.set_status("False");
  condition.set_reason(obstacle.reason);
  condition.set_message(Message(started));
  *condition.mutable_last_update_time() = ToProto(in.now);
  *condition.mutable_last_transition_time() = ToProto(in.now);
  delta.AddEvent(true, obstacle.event, Message(started));
}

// What it needs and cannot be had now is said by an event, too, when it is news.
void SayWhyNotStarted(const TrialEdit& edit, const Status& started) {
  const std::string before = edit.trial.trial().waiting();
  SetWaitReason(edit, Message(started));
  const std::string reason = trial::EventReasonOf(started);
  if (reason.empty() || !absl::IsResourceExhausted(started)) return;
  // An obstacle is told of the whole experiment, once.
  if (std::any_of(std::begin(kObstacles), std::end(kObstacles),
                  [&](const StartObstacle& one) { return one.is(started); })) {
    return;
  }
  if (edit.trial.trial().waiting() == before) return;
  edit.delta.AddEvent(edit.trial.trial(), true, reason, Message(started));
}

// Nothing was started, and may be later.
bool MayStartLater(const Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ||
         absl::IsUnimplemented(status);
}

}  // namespace

AttemptAction NextAction(const PassInput& in, const ActiveTrial& active) {
  using Kind = AttemptAction::Kind;
  const AttemptMemory& memory = active.memory;
  const v1::Attempt& attempt = active.open->record;
  if (!attempt.has_stop()) {
    if (memory.phase != AttemptPhase::kRecorded) return {};
    const bool asked = in.state.experiment().spec().shirabe().ask_and_tell();
    if (asked && attempt.state() == v1::ATTEMPT_RUNNING) return {Kind::kBegun};
    if (attempt.state() != v1::ATTEMPT_CREATED) return {};
    return {in.monotonic < memory.start_again ? Kind::kStartLater : Kind::kStart};
  }
  const v1::StopRequest& stop = attempt.stop();
  const bool at_once = in.mode.stop_now || (stop.has_deadline() && FromProto(stop.deadline()) <=
                                                                       FromProto(stop.requested()));
  const StopSent wanted = at_once ? StopSent::kAtOnce : StopSent::kWithGrace;
  if (memory.stop_sent >= wanted) return {};  // a second request may only shorten the first
  return {Kind::kStop, at_once};
}

Delta RecordStop(const PassInput& in, const ActiveTrial& active, bool at_once) {
  Delta delta(in.state, in.now);
  delta.Edit(active).mutable_memory().stop_sent =
      at_once ? StopSent::kAtOnce : StopSent::kWithGrace;
  delta.Requeue(kStopPollInterval);
  return delta;
}

Delta RecordStart(const PassInput& in, const ActiveTrial& active, const StartResult& result) {
  Delta delta(in.state, in.now);
  const TrialEdit edit{in, delta, delta.Edit(active)};
  AttemptMemory& memory = edit.trial.mutable_memory();
  const Status& status = result.status;
  for (const StartObstacle& obstacle : kObstacles) SayWhetherInTheWay(in, status, obstacle, delta);
  if (status.ok()) {
    memory.Enter(AttemptPhase::kStarted);
    memory.seen_pending = true;
    // A caller waits for its trial; a program's start is not to be seen sooner.
    const bool asked = in.state.experiment().spec().shirabe().ask_and_tell();
    delta.Requeue(asked ? absl::ZeroDuration() : kSlowStartThreshold);
  } else if (MayStartLater(status)) {
    SayWhyNotStarted(edit, status);
    const bool soon = absl::IsUnavailable(status) && result.resumes;
    const absl::Duration pause = soon ? kVerifyRetryInterval : memory.wait.Pause(in.monotonic);
    memory.start_again = in.monotonic + pause;
    delta.Requeue(pause);
  } else if (absl::IsDataLoss(status)) {
    // Something is in the way of this attempt alone; it is closed without having run.
    RequestStop(edit, v1::APP_ERROR, Message(status));
  } else {
    // Every trial would fail in the same way, so the experiment does, and says why.
    delta.mutable_shirabe().set_fatal(Message(status));
    delta.Requeue(absl::ZeroDuration());
  }
  return delta;
}

// As RecordRunning (pass_observe.cc) would with the next pass.
Delta RecordBegun(const PassInput& in, const ActiveTrial& active) {
  Delta delta(in.state, in.now);
  AttemptMemory& memory = delta.Edit(active).mutable_memory();
  memory.Enter(AttemptPhase::kRunning);
  memory.running_since = memory.saved_at = in.monotonic;
  return delta;
}

// What has ended has left its place: the trial that waits longest asks for it first, in its pause
// or not, or a newer trial would take it each time.
Delta EndStartPauses(const PassInput& in) {
  Delta delta(in.state, in.now);
  for (const auto& [number, active] : in.state.active()) {
    if (active.memory.start_again == absl::ZeroDuration()) continue;
    delta.Edit(active).mutable_memory().start_again = absl::ZeroDuration();
  }
  return delta;
}

// A budget is watched while something runs. What waits for a user, or for something else to end,
// costs nothing.
Delta RequeuePending(const PassInput& in) {
  Delta delta(in.state, in.now);
  const bool has_budget = in.state.experiment().spec().shirabe().budget().has_max_cost();
  for (const auto& [number, active] : in.state.active()) {
    if (!active.open) continue;
    if (has_budget) delta.Requeue(kPendingPollInterval);
    const bool pending = active.memory.phase == AttemptPhase::kStarted &&
                         active.open->record.state() != v1::ATTEMPT_RUNNING;
    if (!pending) continue;
    CapacityWait& wait = delta.Edit(active).mutable_memory().wait;
    delta.Requeue(wait.Pause(in.monotonic, kPendingPollInterval));
  }
  return delta;
}

// ---- the commit, and what comes after it -------------------------------------------------------

// A Commit proves that the lease is still ours; a pass that writes nothing but starts something (a
// Start that had no room before) must ask, or an old owner could start what the new one has closed.
Status Pass::Commit() {
  if (deletes_) return Delete();
  if (state_.Changed()) return state_.Commit(*options_.store);
  const auto to_start = [](const auto& entry) {
    return entry.second.memory.phase == AttemptPhase::kRecorded;
  };
  const bool follow_up_starts = state_.memory().follow_up.phase == AttemptPhase::kRecorded;
  if (!follow_up_starts && std::none_of(state_.active().begin(), state_.active().end(), to_start)) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const v1::Lease lease, options_.store->GetLease(state_.key()));
  if (lease.epoch() == state_.epoch()) return absl::OkStatus();
  return db::LeaseLostError("the lease went to " + lease.holder());
}

// What an experiment leaves goes in steps, between which others write, and then the experiment.
Status Pass::Delete() {
  db::Bulk* const bulk = db::FindBulk(*options_.store);
  if (bulk != nullptr) {
    ASSIGN_OR_RETURN(removing_,
                     bulk->RemoveRows({state_.key(), state_.epoch()}, kRowsRemovedAtOnce));
  }
  if (!removing_) return state_.CommitDelete(*options_.store);
  deletes_ = false;
  state_.DropBatch();
  effects_.Requeue(absl::ZeroDuration());
  return absl::OkStatus();
}

Status Pass::Act() {
  TrimLogs(effects_.trims);
  for (const AttemptKey& key : effects_.forget) {
    Step();
    options_.executor->Forget(key);
  }
  if (deletes_) {
    // First what only this pass knows of; files are removed again if that fails: see the
    // controller.
    options_.executor->CleanVolume(state_.key(), state_.experiment().spec());
    return options_.executor->RemoveFiles(state_.key());
  }
  if (!effects_.forget.empty()) Apply(EndStartPauses(in_));
  for (const v1::Checkpoint& checkpoint : effects_.prune) {
    Step();
    options_.executor->Prune(checkpoint);
  }
  for (const auto& [number, active] : state_.active()) {
    if (active.open) RETURN_IF_ERROR(ActOn(active));
  }
  RETURN_IF_ERROR(ActOnFollowUp());
  RETURN_IF_ERROR(SendNotifications());
  Step();
  return absl::OkStatus();
}

void Pass::GiveTrials() {
  for (const PendingReportPtr& pending_report : mode_.pending_reports) {
    const std::string& caller = pending_report->report.next_for;
    if (caller.empty() || !pending_report->answer.ok()) continue;
    pending_report->answer->next = TrialOfCaller(state_, caller);
  }
}

Status Pass::ActOn(const ActiveTrial& active) {
  Step();
  const v1::Attempt& attempt = active.open->record;
  const AttemptAction action = NextAction(in_, active);
  switch (action.kind) {
    case AttemptAction::Kind::kNone: break;
    case AttemptAction::Kind::kStop: {
      const absl::Duration grace =
          action.at_once ? absl::ZeroDuration() : GraceOf(state_.experiment());
      RETURN_IF_ERROR(
          options_.executor->Stop(KeyOf(state_, attempt), attempt.stop().cause(), grace));
      Apply(RecordStop(in_, active, action.at_once));
      break;
    }
    case AttemptAction::Kind::kStartLater:
      effects_.Requeue(active.memory.start_again - in_.monotonic);
      break;
    case AttemptAction::Kind::kStart: Apply(RecordStart(in_, active, Start(active))); break;
    case AttemptAction::Kind::kBegun:
      options_.executor->Adopt({attempt});
      Apply(RecordBegun(in_, active));
      break;
  }
  return absl::OkStatus();
}

StartResult Pass::Start(const ActiveTrial& active) {
  auto request =
      RequestFor(state_, {active.trial.record, active.open->record}, options_.working_dir);
  if (!request.ok()) return {request.status()};
  auto resume = ResumeCandidates(in_, active);
  if (!resume.ok()) return {resume.status()};
  request->resume = *std::move(resume);
  return Start(*request);
}

Status Pass::ActOnFollowUp() {
  const auto follow_up = OpenFollowUp(state_);
  if (!follow_up) return absl::OkStatus();
  Step();
  const AttemptAction action = NextAction(in_, *follow_up);
  if (action.kind == AttemptAction::Kind::kStop) {
    const v1::Attempt& attempt = follow_up->open->record;
    const absl::Duration grace =
        action.at_once ? absl::ZeroDuration() : GraceOf(state_.experiment());
    RETURN_IF_ERROR(options_.executor->Stop(KeyOf(state_, attempt), attempt.stop().cause(), grace));
    Apply(RecordFollowUpStop(in_, action.at_once));
  } else if (action.kind == AttemptAction::Kind::kStartLater) {
    effects_.Requeue(follow_up->memory.start_again - in_.monotonic);
  } else if (action.kind == AttemptAction::Kind::kStart) {
    const auto request = FollowUpRequest(in_, *follow_up);
    Apply(RecordFollowUpStart(in_, request.ok() ? Start(*request) : StartResult{request.status()}));
  }
  return absl::OkStatus();
}

StartResult Pass::Start(const trial::AttemptRequest& request) {
  const bool resumes = !request.resume.empty();
  if (resumes) {  // a checkpoint may be large: it is not copied to a machine that is not there
    const trial::PlacementQuote quote = options_.executor->QuotePlacement(
        state_.key(), request.trial_spec, request.placement_request);
    if (!quote.waiting.empty()) return {absl::ResourceExhaustedError(quote.waiting), resumes};
  }
  const Status status = options_.executor->Start(request);
  Step();
  return {status, resumes};
}

}  // namespace shirabe::experiment
