#include "experiment/pass.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/printable.h"
#include "experiment/ingest.h"
#include "experiment/objective.h"
#include "experiment/request.h"
#include "experiment/submit.h"

namespace shirabe::experiment {
namespace {

constexpr absl::Duration kIntentInterval = absl::Milliseconds(400);
constexpr absl::Duration kMinCollectInterval = absl::Milliseconds(250);
constexpr absl::Duration kMaxCollectInterval = absl::Seconds(1);
constexpr absl::Duration kNoteStartAfter = absl::Milliseconds(50);
constexpr int kTailLines = 20;

std::string EndMessage(const v1::Attempt& attempt) {
  if (!attempt.message().empty()) return attempt.message();
  if (attempt.signal() != 0) return absl::StrFormat("ended by signal %d", attempt.signal());
  if (attempt.has_exit_code()) return absl::StrFormat("exit code %d", attempt.exit_code());
  return "nobody saw it end";
}

}  // namespace

Pass::Pass(const ReconcilerOptions& options, State& state, PassMode mode)
    : options_(options),
      state_(state),
      mode_(mode),
      now_(options.clock->Now()),
      monotonic_(options.clock->Monotonic()) {}

StatusOr<ReconcileResult> Pass::Run() {
  RETURN_IF_ERROR(TakeIntents());
  RETURN_IF_ERROR(ObserveAttempts());
  Decide();
  Propose();
  RETURN_IF_ERROR(CommitOrCheckLease());
  RETURN_IF_ERROR(Act());
  result_.idle = std::none_of(state_.live().begin(), state_.live().end(),
                              [](const auto& entry) { return entry.second.open.has_value(); });
  result_.ended = delete_ || (IsEnded(state_.experiment()) && result_.idle);
  if (!result_.ended) Requeue(kIntentInterval);
  return result_;
}

// A Commit proves that the lease is still ours; a pass that writes nothing but starts something (a
// Start that had no room before) must ask, or an old owner could start what the new one has closed.
Status Pass::CommitOrCheckLease() {
  if (state_.Changed()) return state_.Commit(*options_.store);
  const auto to_start = [](const auto& entry) {
    return entry.second.open && !entry.second.started;
  };
  if (std::none_of(state_.live().begin(), state_.live().end(), to_start)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::Lease lease, options_.store->GetLease(state_.key()));
  if (lease.epoch() == state_.epoch()) return absl::OkStatus();
  return absl::FailedPreconditionError("the lease went to " + lease.holder());
}

// ---- what happened to the open attempts --------------------------------------------------------

Status Pass::ObserveAttempts() {
  std::map<AttemptKey, trial::Sighting> sightings;
  for (trial::Sighting& sighting : options_.executor->Observe(state_.key())) {
    sightings.emplace(sighting.key, std::move(sighting));
  }
  for (auto& [number, live] : state_.live()) {
    if (!live.open) continue;
    const auto found = sightings.find(KeyOf(state_, live.open->record));
    RETURN_IF_ERROR(ObserveOpen(live, found == sightings.end() ? nullptr : &found->second));
  }
  return absl::OkStatus();
}

Status Pass::ObserveOpen(Live& live, const trial::Sighting* sighting) {
  const bool recorded = live.open->record.state() == v1::ATTEMPT_RUNNING;
  if (sighting == nullptr) {
    if (!recorded && !live.open->record.has_stop()) return absl::OkStatus();  // Act will start it
    // It should run, or end, and this executor does not know it; a Start whose answer was lost may
    // have taken effect. Look for it before believing that there is none.
    options_.executor->Adopt({live.open->record});
    Requeue(absl::ZeroDuration());
    return absl::OkStatus();
  }
  if (sighting->state == trial::Sighting::State::kRunning) {
    NoteRunning(live, *sighting);
    return CollectLive(live);
  }
  // The intent to start it was stored, and no process of it was ever seen: start it now.
  if (sighting->state == trial::Sighting::State::kLost && !recorded &&
      sighting->placement.pid() == 0 && !live.open->record.has_stop()) {
    options_.executor->Forget(sighting->key);
    live.started = false;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const bool complete, CollectRest(live));
  if (complete) {
    Finish(live, *sighting);
  } else {
    Requeue(absl::ZeroDuration());
  }
  return absl::OkStatus();
}

void Pass::NoteRunning(Live& live, const trial::Sighting& sighting) {
  v1::Attempt& attempt = live.open->record;
  live.started = true;
  if (attempt.state() == v1::ATTEMPT_RUNNING) return;
  attempt.set_state(v1::ATTEMPT_RUNNING);
  *attempt.mutable_start_time() = sighting.placement.start_time();
  *attempt.add_placements() = sighting.placement;
  live.open_changed = true;
  v1::Trial& trial = live.trial.record;
  if (!trial.has_start_time()) *trial.mutable_start_time() = attempt.start_time();
  trial.clear_waiting();
  live.trial_changed = true;
  state_.SetPhase(live, v1::TRIAL_RUNNING);
}

metrics::Source Pass::SourceOf(const Live& live) const {
  const AttemptKey key = KeyOf(state_, live.open->record);
  metrics::Source source =
      SourceFor(state_, live, options_.executor->Paths(key), options_.working_dir);
  source.now = now_;
  return source;
}

// Looks less often at trials that have nothing to say.
Status Pass::CollectLive(Live& live) {
  if (monotonic_ < live.collect_at) {
    Requeue(live.collect_at - monotonic_);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Ingested ingested, Ingest(state_, live, SourceOf(live), *options_.store));
  live.collect_interval = ingested.news
                              ? kMinCollectInterval
                              : std::min(std::max(live.collect_interval * 1.5, kMinCollectInterval),
                                         kMaxCollectInterval);
  if (ingested.more) live.collect_interval = absl::ZeroDuration();
  live.collect_at = monotonic_ + live.collect_interval;
  Requeue(live.collect_interval);
  return absl::OkStatus();
}

// True once everything the program left has been read. A large rest is read over several passes,
// each of which commits, so that memory stays bounded.
StatusOr<bool> Pass::CollectRest(Live& live) {
  metrics::Source source = SourceOf(live);
  source.ended = true;
  ASSIGN_OR_RETURN(const Ingested ingested, Ingest(state_, live, source, *options_.store));
  return !ingested.more;
}

void Pass::Finish(Live& live, const trial::Sighting& sighting) {
  v1::Attempt& attempt = live.open->record;
  const EndFacts facts = {.lost = sighting.state == trial::Sighting::State::kLost,
                          .exit_code = sighting.exit_code,
                          .signal = sighting.signal,
                          .out_of_memory = sighting.out_of_memory};
  forget_.push_back(sighting.key);
  attempt.set_message(Printable(sighting.message));
  if (facts.exit_code) attempt.set_exit_code(*facts.exit_code);
  attempt.set_signal(facts.signal);
  *attempt.mutable_end_time() =
      sighting.placement.has_end_time() ? sighting.placement.end_time() : ToProto(now_);
  if (sighting.placement.has_start_time()) {
    *attempt.mutable_start_time() = sighting.placement.start_time();
    attempt.clear_placements();
    *attempt.add_placements() = sighting.placement;
    *attempt.mutable_placements(0)->mutable_end_time() = attempt.end_time();
  }
  attempt.set_cause(Classify(attempt, facts));
  v1::Trial& trial = live.trial.record;
  if (!trial.has_start_time() && attempt.has_start_time()) {
    *trial.mutable_start_time() = attempt.start_time();
  }
  FinishTrial(live, Next(attempt.cause(), trial, state_.experiment().spec().shirabe().attempts()));
}

// What the end of its open attempt means for the trial.
void Pass::FinishTrial(Live& live, const NextStep& next) {
  v1::Attempt& attempt = live.open->record;
  v1::Trial& trial = live.trial.record;
  const bool charged = next.charge != NextStep::Charge::kNothing;
  if (next.charge == NextStep::Charge::kFailure) trial.set_failures(trial.failures() + 1);
  if (next.charge == NextStep::Charge::kPreemption) trial.set_preemptions(trial.preemptions() + 1);
  trial.set_yields(next.charge == NextStep::Charge::kYield ? trial.yields() + 1 : 0);
  const trial::AttemptPaths paths = options_.executor->Paths(KeyOf(state_, attempt));
  if (charged || attempt.cause() == v1::COMPLETED) trial.set_message(EndMessage(attempt));
  if (charged) attempt.set_log_tail(Printable(Tail(paths.log, kTailLines)));
  live.trial_changed = true;
  if (next.kind == NextStep::Kind::kRetry) {
    *trial.mutable_not_before() = ToProto(now_ + next.delay);
    if (charged) {
      Event(&live, true, "AttemptLost", CauseWord(attempt.cause()) + ": " + EndMessage(attempt));
    }
    state_.CloseAttempt(live);
    state_.SetPhase(live, v1::TRIAL_PENDING);
    return;
  }
  if (next.phase == v1::TRIAL_SUCCEEDED) {
    Complete(live, next.reason);
    return;
  }
  trial.set_reason(next.reason);
  *trial.mutable_completion_time() = attempt.end_time();
  if (charged) Event(&live, true, next.reason, EndMessage(attempt));
  state_.CloseAttempt(live);
  state_.SetPhase(live, next.phase);
}

// The program said that it is done: whether the trial succeeded is up to its metrics.
void Pass::Complete(Live& live, std::string reason) {
  v1::Trial& trial = live.trial.record;
  const std::string& metric = state_.experiment().spec().objective().objective_metric_name();
  v1::TrialPhase phase = v1::TRIAL_SUCCEEDED;
  trial.clear_message();
  if (FindMetric(trial.observation(), metric) == nullptr) {
    const metrics::Source source = SourceOf(live);
    phase = v1::TRIAL_METRICS_UNAVAILABLE;
    reason = "MetricsUnavailable";
    trial.set_message(Printable(metrics::DescribeSource(source)));
    live.open->record.set_log_tail(Printable(Tail(source.log, kTailLines)));
  } else if (!trial.has_objective()) {
    reason = "ObjectiveNotFinite";
    trial.set_infeasible(true);
    trial.set_message(metric + " was never a finite number that counts");
    v1::ShirabeStatus& status = *state_.mutable_status().mutable_shirabe();
    status.set_trials_infeasible(status.trials_infeasible() + 1);
  }
  trial.set_reason(reason);
  *trial.mutable_completion_time() = live.open->record.end_time();
  if (!trial.message().empty()) Event(&live, true, reason, trial.message());
  state_.CloseAttempt(live);
  state_.SetPhase(live, phase);
}

// ---- after the commit --------------------------------------------------------------------------

Status Pass::Act() {
  for (const AttemptKey& key : forget_) options_.executor->Forget(key);
  if (delete_) return options_.executor->RemoveFiles(state_.key());
  for (auto& [number, live] : state_.live()) {
    if (!live.open) continue;
    const v1::Attempt& attempt = live.open->record;
    if (!attempt.has_stop()) {
      StartOpen(live);
    } else if (!live.stop_sent) {
      const absl::Duration grace = mode_.stop_now || state_.ending_verb == v1::Intent::CANCEL ||
                                           state_.ending_verb == v1::Intent::DELETE
                                       ? absl::ZeroDuration()
                                       : GraceOf(state_.experiment());
      RETURN_IF_ERROR(
          options_.executor->Stop(KeyOf(state_, attempt), attempt.stop().cause(), grace));
      live.stop_sent = !mode_.suspended || mode_.stop_now;  // a second request may shorten it
      Requeue(kMinCollectInterval);
    }
  }
  return absl::OkStatus();
}

void Pass::StartOpen(Live& live) {
  if (live.started || live.open->record.state() != v1::ATTEMPT_CREATED) return;
  if (monotonic_ < live.start_again) return Requeue(live.start_again - monotonic_);
  const auto request = RequestFor(state_, live, options_.working_dir);
  const Status status = request.ok() ? options_.executor->Start(*request) : request.status();
  if (status.ok()) {
    live.started = true;
    return Requeue(kNoteStartAfter);
  }
  if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) {
    live.trial.record.set_waiting(Message(status));
    live.trial_changed = true;
    live.start_again = monotonic_ + absl::Seconds(1);
    return Requeue(absl::Seconds(1));
  }
  // Every trial would fail in the same way, so the experiment does, and says why.
  state_.mutable_status().mutable_shirabe()->set_fatal(Message(status));
  Requeue(absl::ZeroDuration());
}

void Pass::Event(const Live* live, bool warning, const std::string& reason,
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
