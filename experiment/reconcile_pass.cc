#include "experiment/reconcile_pass.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/log.h"
#include "experiment/attempt_request.h"
#include "experiment/conditions.h"
#include "experiment/observation_ingest.h"
#include "experiment/report_queue.h"
#include "experiment/submission.h"

namespace shirabe::experiment {
namespace {

constexpr absl::Duration kMinCollectInterval = absl::Milliseconds(250);
constexpr absl::Duration kMaxCollectInterval = absl::Seconds(1);
constexpr absl::Duration kUnreadableTimeout = absl::Seconds(30);
constexpr absl::Duration kPendingPollInterval = absl::Milliseconds(400);  // at what is on its way

// The end of an attempt that was told is as good as one that was seen.
void SeeTold(const ActiveTrial& live, absl::Duration monotonic, trial::AttemptStatus& observed) {
  observed.state = trial::AttemptStatus::State::kExited;
  observed.exit_code = live.told->completed ? 0 : 1;
  observed.ran = live.Ran(monotonic);
  observed.message = live.told->message;
}

// There may be room now for what had to wait for it.
void ForgetPauses(State& state) {
  state.trouble.wait.since.reset();
  for (auto& [number, live] : state.live()) {
    live.start_again = absl::ZeroDuration();
    if (!live.started) live.wait.since.reset();
  }
}

}  // namespace

Pass::Pass(const ReconcilerOptions& options, State& state, ReconcileMode mode)
    : options_(options),
      state_(state),
      mode_(mode),
      now_(options.clock->Now()),
      monotonic_(options.clock->Monotonic()) {}

StatusOr<ReconcileResult> Pass::Run() {
  Step();
  state_.ReleaseAnswered();
  RETURN_IF_ERROR(ProcessIntents());
  ProcessReports();
  if (mode_.recheck) ForgetPauses(state_);
  RETURN_IF_ERROR(ObserveAttempts());
  Decide();
  StopEarly();
  Propose();
  Step();
  RETURN_IF_ERROR(CommitOrCheckLease());
  Step();
  RETURN_IF_ERROR(Act());
  result_.idle = std::none_of(state_.live().begin(), state_.live().end(),
                              [](const auto& entry) { return entry.second.open.has_value(); });
  result_.deleted = delete_;
  result_.ended = delete_ || (IsEnded(state_.experiment()) && result_.idle && !removing_);
  if (!result_.ended) RequeuePending();
  return result_;
}

// What is on its way is looked at again, however little is heard of it, and a budget is watched
// while something runs. What waits for a user, or for something else to end, costs nothing.
void Pass::RequeuePending() {
  const v1::ShirabeSpec& spec = state_.experiment().spec().shirabe();
  for (auto& [number, live] : state_.live()) {
    if (!live.open) continue;
    if (spec.budget().has_max_cost()) Requeue(kPendingPollInterval);
    if (live.open->record.state() == v1::ATTEMPT_RUNNING || !live.started) continue;
    Requeue(live.wait.Pause(monotonic_, kPendingPollInterval));
  }
}

void Pass::ProcessReports() {
  for (const PendingReportPtr& pending_report : mode_.pending_reports) {
    pending_report->answer = ApplyReport(state_, pending_report->report, *options_.store, now_);
  }
}

// ---- what happened to the open attempts --------------------------------------------------------

Status Pass::ObserveAttempts() {
  std::map<AttemptKey, trial::AttemptStatus> statuses;
  for (trial::AttemptStatus& observed : options_.executor->Observe(state_.key())) {
    statuses.emplace(observed.key, std::move(observed));
  }
  for (auto& [number, live] : state_.live()) {
    if (!live.open) continue;
    if (live.told) SeeTold(live, monotonic_, statuses[KeyOf(state_, live.open->record)]);
    const auto found = statuses.find(KeyOf(state_, live.open->record));
    RETURN_IF_ERROR(ObserveOpen(live, found == statuses.end() ? nullptr : &found->second));
    if (found != statuses.end()) statuses.erase(found);
  }
  for (const auto& [key, observed] : statuses) StopOrphan(observed);
  return absl::OkStatus();
}

// An attempt that is no longer, or not yet again, the open one of its trial: a zombie. Nothing of
// it is read, and it is ended.
void Pass::StopOrphan(const trial::AttemptStatus& observed) {
  if (observed.state != trial::AttemptStatus::State::kRunning)
    return forget_.push_back(observed.key);
  if (state_.Refuse(observed.key)) {
    Log(LogLevel::kWarning, "a replaced attempt still runs; its writes are refused",
        {{"attempt", AttemptName(observed.key)}});
  }
  options_.executor->Stop(observed.key, v1::USER, absl::ZeroDuration()).IgnoreError();
  Requeue(kPendingPollInterval);
}

Status Pass::ObserveOpen(ActiveTrial& live, const trial::AttemptStatus* observed) {
  const bool recorded = live.open->record.state() == v1::ATTEMPT_RUNNING;
  if (observed == nullptr) {
    if (!recorded && !live.open->record.has_stop()) {
      live.started = false;  // Act will start it; again, if an earlier start is not to be seen
      return absl::OkStatus();
    }
    // It should run, or end, and this executor does not know it; a Start whose answer was lost may
    // have taken effect. Look for it before believing that there is none.
    options_.executor->Adopt({live.open->record});
    Requeue(absl::ZeroDuration());
    return absl::OkStatus();
  }
  if (observed->state == trial::AttemptStatus::State::kRunning) {
    if (!observed->placement.has_start_time()) {
      RecordPending(live, *observed);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(RecordRunning(live, *observed));
    // What it reported before it saved is to be known when the save is recorded.
    if (HasNewCheckpoint(live, *observed)) live.collect_at = absl::ZeroDuration();
    ASSIGN_OR_RETURN(const bool complete, CollectRunning(live));
    return complete ? RecordCheckpoints(live, *observed) : absl::OkStatus();
  }
  // The intent to start it was stored, and no process of it was ever seen: start it now.
  if (observed->state == trial::AttemptStatus::State::kLost && !recorded &&
      observed->placement.pid() == 0 && !live.open->record.has_stop()) {
    options_.executor->Forget(observed->key);
    live.started = false;
    return absl::OkStatus();
  }
  live.exited = true;
  if (observed->placement.has_start_time()) RETURN_IF_ERROR(RecordRunning(live, *observed));
  ASSIGN_OR_RETURN(const bool complete, CollectRemaining(live));
  if (!complete) {
    Requeue(live.unreadable_since ? kMinCollectInterval : absl::ZeroDuration());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(RecordCheckpoints(live, *observed));
  Finish(live, *observed);
  return absl::OkStatus();
}

void Pass::SetWaitReason(ActiveTrial& live, const std::string& why) {
  v1::Trial& trial = live.trial.record;
  if (trial.waiting() == why || !live.wait.MayRecordReason(monotonic_)) return;
  trial.set_waiting(why);
  live.trial_changed = true;
}

// Its object exists, its program does not run yet; or, after a restart, it is not known whether it
// does.
void Pass::RecordPending(ActiveTrial& live, const trial::AttemptStatus& observed) {
  live.started = true;
  if (live.open->record.state() == v1::ATTEMPT_RUNNING) return;
  SetWaitReason(live, observed.waiting);
}

Status Pass::RecordRunning(ActiveTrial& live, const trial::AttemptStatus& observed) {
  v1::Attempt& attempt = live.open->record;
  live.started = true;
  if (!live.running_since) {
    live.running_since = live.saved_at = monotonic_;
    const absl::Duration by_wall = now_ - FromProto(observed.placement.start_time());
    live.ran_before = std::max(absl::ZeroDuration(), observed.ran.value_or(by_wall));
  }
  if (attempt.state() == v1::ATTEMPT_RUNNING) {
    RecordPlacement(live, observed.placement);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(RecordResume(live, observed));
  attempt.set_state(v1::ATTEMPT_RUNNING);
  *attempt.mutable_start_time() = observed.placement.start_time();
  *attempt.add_placements() = observed.placement;
  live.open_changed = true;
  v1::Trial& trial = live.trial.record;
  if (!trial.has_start_time()) *trial.mutable_start_time() = attempt.start_time();
  trial.clear_waiting();
  live.trial_changed = true;
  state_.SetPhase(live, v1::TRIAL_RUNNING);
  return absl::OkStatus();
}

// Where it runs, and at what price, may be known later than that it runs.
void Pass::RecordPlacement(ActiveTrial& live, const v1::Placement& placement) {
  v1::Attempt& attempt = live.open->record;
  if (attempt.placements_size() != 1 || IsPlaced(attempt) || !IsPlaced(placement)) return;
  *attempt.mutable_placements(0) = placement;
  live.open_changed = true;
}

metrics::Source Pass::SourceOf(const ActiveTrial& live) const {
  const AttemptKey key = KeyOf(state_, live.open->record);
  metrics::Source source =
      SourceFor(state_, live, options_.executor->Paths(key), options_.working_dir);
  source.now = now_;
  return source;
}

// Looks less often at trials that have nothing to say; never at those that a caller runs, which
// tells what there is. False if more is there than was read.
StatusOr<bool> Pass::CollectRunning(ActiveTrial& live) {
  if (state_.experiment().spec().shirabe().ask_and_tell()) return true;
  if (monotonic_ < live.collect_at) {
    Requeue(live.collect_at - monotonic_);
    return true;
  }
  const metrics::Source source = SourceOf(live);
  ASSIGN_OR_RETURN(const IngestResult ingested, Ingest(state_, live, source, *options_.store));
  if (!ingested.unreadable.ok()) {
    FailUnreadable(live, ingested.unreadable);
    live.collect_interval = kMaxCollectInterval;
    live.collect_at = monotonic_ + live.collect_interval;
    Requeue(live.collect_interval);
    return true;
  }
  live.unreadable_since.reset();
  trims_.Add(live, source);
  live.collect_interval = ingested.has_new
                              ? kMinCollectInterval
                              : std::min(std::max(live.collect_interval * 1.5, kMinCollectInterval),
                                         kMaxCollectInterval);
  if (ingested.more) live.collect_interval = absl::ZeroDuration();
  live.collect_at = monotonic_ + live.collect_interval;
  Requeue(live.collect_interval);
  return !ingested.more;
}

// True once everything the program left has been read. A large rest is read over several passes,
// each of which commits, so that memory stays bounded.
StatusOr<bool> Pass::CollectRemaining(ActiveTrial& live) {
  metrics::Source source = SourceOf(live);
  source.ended = true;
  ASSIGN_OR_RETURN(const IngestResult ingested, Ingest(state_, live, source, *options_.store));
  if (!ingested.unreadable.ok()) return FailUnreadable(live, ingested.unreadable);
  trims_.Add(live, source);
  return !ingested.more;
}

// What a program put where its metrics should be ends its attempt, and nothing else: at once where
// it can never be read, after a while where the disk may answer again. True if it is given up.
bool Pass::FailUnreadable(ActiveTrial& live, const Status& unreadable) {
  const bool never = absl::IsInvalidArgument(unreadable) || absl::IsPermissionDenied(unreadable);
  if (!live.unreadable_since) live.unreadable_since = monotonic_;
  if (!never && monotonic_ - *live.unreadable_since < kUnreadableTimeout) return false;
  RequestStop(live, never ? v1::APP_ERROR : v1::INFRASTRUCTURE, Message(unreadable));
  return true;
}

void Pass::Step() {
  if (options_.at_step) options_.at_step();
}

void Pass::Requeue(absl::Duration after) {
  result_.requeue_after = std::min(result_.requeue_after, after);
}

void Pass::Event(const ActiveTrial* live, bool warning, const std::string& reason,
                 const std::string& message) {
  v1::Event event;
  if (live != nullptr) {
    event.set_trial(live->trial.record.number());
    event.set_attempt(live->trial.record.attempts());
  }
  event.set_warning(warning);
  event.set_reason(reason);
  event.set_message(message);
  state_.AddEvent(std::move(event), now_);
}

}  // namespace shirabe::experiment
