// The end of an attempt, and what it means for its trial.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/open_beneath.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/attempt_request.h"
#include "experiment/pass_steps.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/trial_result.h"
#include "experiment/state/budget.h"
#include "experiment/state/retry_policy.h"
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

// The newest of the attempt's own checkpoints; nullopt if it left none.
std::optional<v1::Checkpoint> LastSave(const TrialDelta& trial) {
  std::optional<v1::Checkpoint> last;
  for (v1::Checkpoint& checkpoint : trial.Checkpoints()) {
    if (checkpoint.attempt() != trial.attempt().number()) continue;
    if (!last || checkpoint.step() > last->step()) last = std::move(checkpoint);
  }
  return last;
}

// Whether it left a checkpoint beyond the one it began with.
bool LeftNewerCheckpoint(const TrialDelta& trial) {
  const auto last = LastSave(trial);
  return last && last->step() > trial.attempt().resumed_from_step();
}

// The disk under what a program on this machine prints, if it is full: what is lost then, nothing
// else tells.
std::string FullDisk(const v1::Attempt& attempt, const std::string& log) {
  constexpr uintmax_t kFull = 64 << 10;
  if (!IsOnThisMachine(attempt)) return "";
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(log, error);
  if (error || space.available >= kFull) return "";
  return "the disk of " + log + " is full: what it printed may be lost";
}

// Where the next attempt can go on, as far as is known now.
std::string GoesOnFrom(const TrialDelta& trial) {
  int64_t step = 0;
  for (const v1::Checkpoint& checkpoint : trial.Checkpoints()) {
    if (checkpoint.gone().empty()) step = std::max(step, checkpoint.step());
  }
  if (step == 0) return "nothing was saved, so it begins again";
  return absl::StrFormat("it goes on from step %d", step);
}

// "preempted-spot on spot-0 after 12.3 s; it goes on from step 40"
std::string LossMessage(const TrialDelta& trial) {
  const v1::Attempt& attempt = trial.attempt();
  std::string text = CauseWord(attempt.cause());
  if (attempt.placements_size() > 0) text += " on " + attempt.placements(0).node();
  text += absl::StrFormat(" after %.1f s", attempt.seconds());
  if (attempt.cause() == v1::UNKNOWN_CAUSE || !attempt.message().empty()) {
    text += " (" + EndMessage(attempt) + ")";
  }
  return text + "; " + GoesOnFrom(trial);
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

v1::Cause CauseOf(const v1::Attempt& attempt, const trial::AttemptStatus& observed) {
  return Classify(attempt, {.platform = observed.platform,
                            .done = attempt.cursor().done(),
                            .lost = observed.state == trial::AttemptStatus::State::kLost,
                            .exit_code = observed.exit_code,
                            .signal = observed.signal,
                            .out_of_memory = observed.out_of_memory});
}

// The record of an attempt that has ended, but for what its trial makes of it.
void CompleteRecord(const TrialEdit& edit, const trial::AttemptStatus& observed) {
  v1::Attempt& attempt = edit.trial.mutable_attempt();
  // Why we ended it says more than how it ended then.
  const bool ours =
      attempt.stop().cause() == v1::APP_ERROR || attempt.stop().cause() == v1::INFRASTRUCTURE;
  attempt.set_message(Printable(ours ? attempt.stop().reason() : observed.message));
  if (observed.exit_code) attempt.set_exit_code(*observed.exit_code);
  attempt.set_signal(observed.signal);
  *attempt.mutable_end_time() =
      observed.placement.has_end_time() ? observed.placement.end_time() : ToProto(edit.in.now);
  if (observed.placement.has_start_time()) {
    *attempt.mutable_start_time() = observed.placement.start_time();
    attempt.clear_placements();
    *attempt.add_placements() = observed.placement;
    *attempt.mutable_placements(0)->mutable_end_time() = attempt.end_time();
  }
  attempt.set_cause(CauseOf(attempt, observed));
  std::optional<absl::Time> last_save;
  if (const auto save = LastSave(edit.trial)) last_save = FromProto(save->time());
  CloseAccounts(attempt, edit.trial.trial(), observed.ran, last_save);
}

std::string LogTail(const std::string& log) {
  return Printable(TailBeneath(FolderAbove(log, 3), log, kTailLines));
}

void CloseAs(v1::TrialPhase phase, const TrialEdit& edit) {
  edit.trial.Close();
  edit.trial.SetPhase(phase);
}

void CountInfeasible(const TrialEdit& edit) {
  edit.trial.mutable_trial().set_infeasible(true);
  v1::ShirabeStatus& status = edit.delta.mutable_shirabe();
  status.set_trials_infeasible(status.trials_infeasible() + 1);
}

void RetryTrial(const TrialEdit& edit, const NextStep& next) {
  using Charge = NextStep::Charge;
  const v1::Attempt& attempt = edit.trial.attempt();
  v1::Trial& trial = edit.trial.mutable_trial();
  const bool saved = LeftNewerCheckpoint(edit.trial);
  if (next.charge == Charge::kYield && !saved) trial.set_yields(trial.yields() + 1);
  if (next.charge == Charge::kPreemption && !saved) trial.set_fruitless(trial.fruitless() + 1);
  *trial.mutable_not_before() = ToProto(edit.in.now + next.delay);
  if (next.charge == Charge::kPreemption) {
    const bool preempted = IsPreemption(attempt.cause());
    edit.delta.AddEvent(trial, !preempted, preempted ? "TrialPreempted" : "AttemptLost",
                        LossMessage(edit.trial));
  } else if (next.charge != Charge::kNothing) {
    edit.delta.AddEvent(
        trial, true, next.charge == Charge::kYield ? "TrialYielded" : "AttemptFailed",
        CauseWord(attempt.cause()) + ": " + EndMessage(attempt) + "; " + GoesOnFrom(edit.trial));
  }
  CloseAs(v1::TRIAL_PENDING, edit);
}

// The program said that it is done: whether the trial succeeded is up to its metrics.
void CompleteTrial(const TrialEdit& edit, std::string reason) {
  v1::Trial& trial = edit.trial.mutable_trial();
  const std::string& metric = edit.in.state.experiment().spec().objective().objective_metric_name();
  v1::TrialPhase phase = v1::TRIAL_SUCCEEDED;
  trial.clear_message();
  if (FindMetric(trial.observation(), metric) == nullptr) {
    const metrics::Source source = SourceOf(edit.in, trial, edit.trial.attempt());
    phase = v1::TRIAL_METRICS_UNAVAILABLE;
    reason = "MetricsUnavailable";
    std::string why = metrics::DescribeSource(*edit.in.state.setup().collector, source);
    const std::string& end = edit.trial.attempt().message();
    if (!end.empty()) why += "; " + end;
    trial.set_message(Printable(why));
    edit.trial.mutable_attempt().set_log_tail(LogTail(source.files.log));
  } else if (!trial.has_objective()) {
    reason = "ObjectiveNotFinite";
    trial.set_message(metric + " was never a finite number that counts");
    CountInfeasible(edit);
  } else if (std::string why = MissingFrom(edit.in.state.experiment().spec(), trial);
             !why.empty()) {
    reason = "ResultIncomplete";
    trial.set_message(std::move(why));
    CountInfeasible(edit);
  }
  trial.set_reason(reason);
  *trial.mutable_completion_time() = edit.trial.attempt().end_time();
  if (!trial.message().empty()) edit.delta.AddEvent(trial, true, reason, trial.message());
  CloseAs(phase, edit);
}

// What the end of its open attempt means for the trial.
void FinishTrial(const TrialEdit& edit, const NextStep& next) {
  using Charge = NextStep::Charge;
  v1::Attempt& attempt = edit.trial.mutable_attempt();
  v1::Trial& trial = edit.trial.mutable_trial();
  const bool charged = next.charge != Charge::kNothing;
  if (next.charge == Charge::kFailure) trial.set_failures(trial.failures() + 1);
  if (next.charge == Charge::kPreemption) trial.set_preemptions(trial.preemptions() + 1);
  if (charged || attempt.cause() == v1::COMPLETED) trial.set_message(EndMessage(attempt));
  if (next.charge == Charge::kFailure && attempt.cause() == v1::YIELDED) {
    trial.set_message(trial.message() +
                      ": it asks to be run again, again and again without a newer checkpoint");
  }
  if (charged && !IsPreemption(attempt.cause())) {
    const AttemptKey key = KeyOf(edit.in.state, attempt);
    attempt.set_log_tail(LogTail(edit.in.options.executor->Paths(key).log));
  }
  if (next.kind == NextStep::Kind::kRetry) return RetryTrial(edit, next);
  if (next.phase == v1::TRIAL_SUCCEEDED) return CompleteTrial(edit, next.reason);
  trial.set_reason(next.reason);
  *trial.mutable_completion_time() = attempt.end_time();
  if (charged) edit.delta.AddEvent(trial, true, next.reason, EndMessage(attempt));
  if (attempt.cause() == v1::EARLY_STOPPED || next.phase == v1::TRIAL_EARLY_STOPPED) {
    RecordEarlyStop(edit, next.phase, attempt.stop().reason());
  }
  CloseAs(next.phase, edit);
}

// Those of an attempt that is followed by another are not what the trial will leave.
void RecordOutputs(const TrialEdit& edit, v1::Checkpoint outputs, const NextStep& next) {
  if (next.kind == NextStep::Kind::kRetry) {
    edit.delta.effects().prune.push_back(std::move(outputs));
    return;
  }
  edit.delta.AddEvent(
      edit.trial.trial(), false, "OutputsCopied",
      absl::StrCat(FormatBytes(outputs.bytes()), ", to ", Printable(outputs.location())));
  *outputs.mutable_time() = ToProto(edit.in.now);
  *edit.trial.mutable_trial().mutable_outputs() = std::move(outputs);
}

}  // namespace

void RecordEarlyStop(const TrialEdit& edit, v1::TrialPhase phase, const std::string& reason) {
  v1::Trial& trial = edit.trial.mutable_trial();
  trial.set_message(reason);
  const std::string missing = MissingFrom(edit.in.state.experiment().spec(), trial);
  if (phase == v1::TRIAL_EARLY_STOPPED && !missing.empty()) {
    trial.set_message(trial.message() + "; " + missing);
  }
  edit.delta.AddEvent(trial, phase == v1::TRIAL_FAILED, trial.reason(), trial.message());
  if (phase != v1::TRIAL_EARLY_STOPPED) return;
  v1::Trial ended = trial;
  ended.set_phase(phase);
  if (!IsOfUse(edit.in.state.experiment().spec(), ended)) CountInfeasible(edit);
}

void FinishAttempt(const TrialEdit& edit, const trial::AttemptStatus& observed) {
  edit.delta.effects().forget.push_back(observed.key);
  CompleteRecord(edit, observed);
  v1::Attempt& attempt = edit.trial.mutable_attempt();
  const std::string full = FullDisk(attempt, edit.in.options.executor->Paths(observed.key).log);
  if (!full.empty()) {
    attempt.set_message(EndMessage(attempt) + "; " + full);
    edit.delta.AddEvent(edit.trial.trial(), true, "DiskFull", full);
  }
  for (const std::string& refused : observed.refused) {
    edit.delta.AddEvent(edit.trial.trial(), true, "CheckpointRefused", Printable(refused));
  }
  if (!observed.copied.empty()) {
    edit.delta.AddEvent(edit.trial.trial(), false, "CheckpointsCopied", observed.copied);
  }
  if (!observed.uncopied.empty()) {
    edit.delta.AddEvent(edit.trial.trial(), true, "CheckpointsNotCopied",
                        Printable(observed.uncopied) + "; they stay where it ran");
  }
  if (!observed.outputs_uncopied.empty()) {
    edit.delta.AddEvent(edit.trial.trial(), true, "OutputsNotCopied",
                        Printable(observed.outputs_uncopied) + "; they stay where it ran");
  }
  v1::Trial& trial = edit.trial.mutable_trial();
  if (LeftNewerCheckpoint(edit.trial)) {
    trial.set_fruitless(0);
    trial.set_yields(0);
  }
  const v1::StopRequest& stop = edit.trial.attempt().stop();
  const bool told =
      edit.trial.attempt().cause() == v1::EARLY_STOPPED && !stop.trial_reason().empty();
  const NextStep next = told ? NextAfterStop(stop.trial_reason(), trial)
                             : NextAfter(edit.trial.attempt().cause(), observed.overdue, trial,
                                         edit.in.state.experiment().spec().shirabe().attempts());
  if (observed.outputs) RecordOutputs(edit, *observed.outputs, next);
  FinishTrial(edit, next);
  PruneOld(edit);
}

}  // namespace shirabe::experiment
