// The end of an attempt, and what it means for its trial.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/open_beneath.h"
#include "base/printable.h"
#include "experiment/attempt_request.h"
#include "experiment/conditions.h"
#include "experiment/reconcile_pass.h"
#include "experiment/spec/objective_value.h"
#include "metrics/describe_source.h"

namespace shirabe::experiment {
namespace {

constexpr int kTailLines = 20;

std::string EndMessage(const v1::Attempt& attempt) {
  if (!attempt.message().empty()) return attempt.message();
  if (attempt.signal() != 0) return absl::StrFormat("ended by signal %d", attempt.signal());
  if (attempt.has_exit_code()) return absl::StrFormat("exit code %d", attempt.exit_code());
  return "its end was not observed";
}

// The newest of the attempt's own checkpoints; null if it left none.
const v1::Checkpoint* LastSave(const ActiveTrial& live) {
  const v1::Checkpoint* last = nullptr;
  for (const auto& [checkpoint, revision] : live.checkpoints) {
    if (checkpoint.attempt() != live.open->record.number()) continue;
    if (last == nullptr || checkpoint.step() > last->step()) last = &checkpoint;
  }
  return last;
}

// Whether it left a checkpoint beyond the one it began with.
bool LeftNewerCheckpoint(const ActiveTrial& live) {
  const v1::Checkpoint* last = LastSave(live);
  return last != nullptr && last->step() > live.open->record.resumed_from_step();
}

// Where the next attempt can go on, as far as is known now.
std::string GoesOnFrom(const ActiveTrial& live) {
  int64_t step = 0;
  for (const auto& [checkpoint, revision] : live.checkpoints) {
    if (checkpoint.gone().empty()) step = std::max(step, checkpoint.step());
  }
  if (step == 0) return "nothing was saved, so it begins again";
  return absl::StrFormat("it goes on from step %d", step);
}

// "preempted-spot on spot-0 after 12.3 s; it goes on from step 40"
std::string LossMessage(const ActiveTrial& live) {
  const v1::Attempt& attempt = live.open->record;
  std::string text = CauseWord(attempt.cause());
  if (attempt.placements_size() > 0) text += " on " + attempt.placements(0).node();
  text += absl::StrFormat(" after %.1f s", attempt.seconds());
  if (attempt.cause() == v1::UNKNOWN_CAUSE || !attempt.message().empty()) {
    text += " (" + EndMessage(attempt) + ")";
  }
  return text + "; " + GoesOnFrom(live);
}

bool IsPreemption(v1::Cause cause) {
  return IsLoss(cause) && cause != v1::INFRASTRUCTURE && cause != v1::UNKNOWN_CAUSE;
}

// One that was stopped, or taken away, before its time was over did not outrun it.
NextStep NextAfter(v1::Cause cause, trial::AttemptStatus::Overdue overdue, const v1::Trial& trial,
                   const v1::AttemptPolicy& policy) {
  using Overdue = trial::AttemptStatus::Overdue;
  if (cause != v1::APP_ERROR || overdue == Overdue::kNo) return Next(cause, trial, policy);
  const Deadline deadline = overdue == Overdue::kJob ? Deadline::kJob : Deadline::kPod;
  return NextAfterDeadline(deadline, trial, policy);
}

}  // namespace

v1::Cause Pass::CauseOf(const ActiveTrial& live, const trial::AttemptStatus& observed) const {
  const v1::Attempt& attempt = live.open->record;
  return Classify(attempt, {.platform = observed.platform,
                            .done = attempt.cursor().done(),
                            .lost = observed.state == trial::AttemptStatus::State::kLost,
                            .exit_code = observed.exit_code,
                            .signal = observed.signal,
                            .out_of_memory = observed.out_of_memory});
}

void Pass::Finish(ActiveTrial& live, const trial::AttemptStatus& observed) {
  v1::Attempt& attempt = live.open->record;
  v1::Trial& trial = live.trial.record;
  forget_.push_back(observed.key);
  // Why we ended it says more than how it ended then.
  const bool ours =
      attempt.stop().cause() == v1::APP_ERROR || attempt.stop().cause() == v1::INFRASTRUCTURE;
  attempt.set_message(Printable(ours ? attempt.stop().reason() : observed.message));
  if (observed.exit_code) attempt.set_exit_code(*observed.exit_code);
  attempt.set_signal(observed.signal);
  *attempt.mutable_end_time() =
      observed.placement.has_end_time() ? observed.placement.end_time() : ToProto(now_);
  if (observed.placement.has_start_time()) {
    *attempt.mutable_start_time() = observed.placement.start_time();
    attempt.clear_placements();
    *attempt.add_placements() = observed.placement;
    *attempt.mutable_placements(0)->mutable_end_time() = attempt.end_time();
  }
  attempt.set_cause(CauseOf(live, observed));
  const v1::Checkpoint* save = LastSave(live);
  std::optional<absl::Time> last_save;
  if (save != nullptr) last_save = FromProto(save->time());
  CloseAccounts(attempt, trial, observed.ran, last_save);
  for (const std::string& refused : observed.refused) {
    Event(&live, true, "CheckpointRefused", Printable(refused));
  }
  if (LeftNewerCheckpoint(live)) {
    trial.set_fruitless(0);
    trial.set_yields(0);
  }
  FinishTrial(live, NextAfter(attempt.cause(), observed.overdue, trial,
                              state_.experiment().spec().shirabe().attempts()));
  PruneOld(live);
}

// What the end of its open attempt means for the trial.
void Pass::FinishTrial(ActiveTrial& live, const NextStep& next) {
  v1::Attempt& attempt = live.open->record;
  v1::Trial& trial = live.trial.record;
  const bool charged = next.charge != NextStep::Charge::kNothing;
  if (next.charge == NextStep::Charge::kFailure) trial.set_failures(trial.failures() + 1);
  if (next.charge == NextStep::Charge::kPreemption) trial.set_preemptions(trial.preemptions() + 1);
  const trial::AttemptPaths paths = options_.executor->Paths(KeyOf(state_, attempt));
  if (charged || attempt.cause() == v1::COMPLETED) trial.set_message(EndMessage(attempt));
  if (charged && !IsPreemption(attempt.cause())) {
    attempt.set_log_tail(Printable(TailBeneath(FolderAbove(paths.log, 3), paths.log, kTailLines)));
  }
  live.trial_changed = true;
  if (next.kind == NextStep::Kind::kRetry) return Retry(live, next);
  if (next.phase == v1::TRIAL_SUCCEEDED) return Complete(live, next.reason);
  trial.set_reason(next.reason);
  *trial.mutable_completion_time() = attempt.end_time();
  if (charged) Event(&live, true, next.reason, EndMessage(attempt));
  if (next.phase == v1::TRIAL_EARLY_STOPPED) RecordEarlyStop(live);
  state_.CloseAttempt(live);
  state_.SetPhase(live, next.phase);
}

void Pass::Retry(ActiveTrial& live, const NextStep& next) {
  const v1::Attempt& attempt = live.open->record;
  v1::Trial& trial = live.trial.record;
  const bool saved = LeftNewerCheckpoint(live);
  if (next.charge == NextStep::Charge::kYield && !saved) trial.set_yields(trial.yields() + 1);
  if (next.charge == NextStep::Charge::kPreemption && !saved) {
    trial.set_fruitless(trial.fruitless() + 1);
  }
  *trial.mutable_not_before() = ToProto(now_ + next.delay);
  if (next.charge == NextStep::Charge::kPreemption) {
    const bool preempted = IsPreemption(attempt.cause());
    Event(&live, !preempted, preempted ? "TrialPreempted" : "AttemptLost", LossMessage(live));
  } else if (next.charge != NextStep::Charge::kNothing) {
    Event(&live, true, next.charge == NextStep::Charge::kYield ? "TrialYielded" : "AttemptFailed",
          CauseWord(attempt.cause()) + ": " + EndMessage(attempt) + "; " + GoesOnFrom(live));
  }
  state_.CloseAttempt(live);
  state_.SetPhase(live, v1::TRIAL_PENDING);
}

// The program said that it is done: whether the trial succeeded is up to its metrics.
void Pass::Complete(ActiveTrial& live, std::string reason) {
  v1::Trial& trial = live.trial.record;
  const std::string& metric = state_.experiment().spec().objective().objective_metric_name();
  v1::TrialPhase phase = v1::TRIAL_SUCCEEDED;
  trial.clear_message();
  if (FindMetric(trial.observation(), metric) == nullptr) {
    const metrics::Source source = SourceOf(live);
    phase = v1::TRIAL_METRICS_UNAVAILABLE;
    reason = "MetricsUnavailable";
    trial.set_message(Printable(metrics::DescribeSource(source)));
    live.open->record.set_log_tail(
        Printable(TailBeneath(FolderAbove(source.log, 3), source.log, kTailLines)));
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

}  // namespace shirabe::experiment
