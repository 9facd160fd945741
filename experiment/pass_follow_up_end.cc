// What becomes of the attempts of the follow-up.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "base/timestamp.h"
#include "experiment/attempt_request.h"
#include "experiment/observation_ingest.h"
#include "experiment/pass_follow_up.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/state/budget.h"
#include "experiment/state/retry_policy.h"

namespace shirabe::experiment {
namespace {

using trial::AttemptStatus;

std::string AttemptWords(const v1::Attempt& attempt) {
  return absl::StrCat("attempt ", attempt.number());
}

// "exit code 1 (app-error)"
std::string EndWords(const v1::Attempt& attempt, const AttemptStatus& observed) {
  std::string text = Printable(attempt.stop().reason());
  if (text.empty()) text = Printable(observed.message);
  if (text.empty() && observed.signal != 0) {
    text = absl::StrCat("ended by signal ", observed.signal);
  }
  if (text.empty() && observed.exit_code) text = absl::StrCat("exit code ", *observed.exit_code);
  const std::string cause = CauseWord(attempt.cause());
  return text.empty() ? cause : absl::StrCat(text, " (", cause, ")");
}

// What it was given: of a pod known once that has told it, or has ended.
void RecordFollowUpBegin(FollowUpEdit& edit, const AttemptStatus& observed) {
  v1::OnSuccessStatus& status = edit.mutable_status();
  const int64_t step = observed.resumed ? observed.resumed->step() : 0;
  status.set_resumed_from_step(step);
  for (const v1::Checkpoint& damaged : observed.damaged) {
    edit.Say(true, "CheckpointDamaged",
             absl::StrFormat("step %d of %s is not given to %s: %s", damaged.step(),
                             status.best_trial_name(), status.name(), Printable(damaged.gone())));
  }
  edit.Say(false, "OnSuccessStarted",
           absl::StrCat(AttemptWords(edit.attempt()), " of ", status.name(), " runs on ",
                        observed.placement.node(),
                        step == 0 ? ", without a checkpoint"
                                  : absl::StrCat(", with the checkpoint of step ", step),
                        " of ", status.best_trial_name()));
}

void RecordFollowUpRuns(FollowUpEdit& edit, const AttemptStatus& observed) {
  AttemptMemory& memory = edit.memory();
  if (memory.phase != AttemptPhase::kExited) memory.Enter(AttemptPhase::kRunning);
  const bool runs = edit.attempt().state() == v1::ATTEMPT_RUNNING;
  const bool told = observed.begin_known || observed.state != AttemptStatus::State::kRunning;
  if (runs && !(told && edit.attempt().begin_untold())) return;
  edit.ChangeAttempt([&](v1::Attempt& attempt) {
    attempt.set_begin_untold(!told);
    if (runs) return;
    attempt.set_state(v1::ATTEMPT_RUNNING);
    *attempt.mutable_start_time() = observed.placement.start_time();
    *attempt.add_placements() = observed.placement;
  });
  if (!runs) {
    v1::OnSuccessStatus& status = edit.mutable_status();
    status.set_phase(v1::FOLLOW_UP_RUNNING);
    status.clear_waiting();
    if (!status.has_start_time()) *status.mutable_start_time() = observed.placement.start_time();
  }
  if (told) RecordFollowUpBegin(edit, observed);
}

// Nothing of it is collected, but a log must not fill the disk.
void TrimFollowUpLog(FollowUpEdit& edit) {
  const AttemptKey key = KeyOf(edit.in().state, edit.attempt());
  auto log = LongLogOf(edit.in().options.executor->Paths(key));
  if (log) edit.delta().effects().trims.push_back(*std::move(log));
}

NextStep StepAfter(const FollowUpEdit& edit, const AttemptStatus& observed) {
  using Overdue = AttemptStatus::Overdue;
  const ExperimentState& state = edit.in().state;
  v1::AttemptPolicy policy = state.experiment().spec().shirabe().attempts();
  policy.set_max_failures(OnSuccessBackoffLimit(state.experiment().spec()));
  const v1::Cause cause = edit.attempt().cause();
  if (cause != v1::APP_ERROR || observed.overdue == Overdue::kNo) {
    return Next(cause, FollowUpAsTrial(state), policy);
  }
  const bool job = observed.overdue == Overdue::kJob;
  return NextAfterDeadline(job ? Deadline::kJob : Deadline::kPod, FollowUpAsTrial(state), policy);
}

void ChargeFollowUp(FollowUpEdit& edit, const NextStep& next) {
  using Charge = NextStep::Charge;
  v1::OnSuccessStatus& status = edit.mutable_status();
  status.set_seconds(status.seconds() + edit.attempt().seconds());
  status.set_cost(status.cost() + edit.attempt().cost());
  // It is paid for like a trial: in the sums of the experiment, too.
  v1::Trial no_trial;
  experiment::Charge(edit.attempt(), no_trial, edit.delta().mutable_shirabe());
  if (next.charge == Charge::kFailure) status.set_failures(status.failures() + 1);
  if (next.charge == Charge::kPreemption) status.set_preemptions(status.preemptions() + 1);
  status.set_yields(next.charge == Charge::kYield ? status.yields() + 1 : 0);
}

void RetryFollowUp(FollowUpEdit& edit, const NextStep& next, const std::string& how) {
  using Charge = NextStep::Charge;
  v1::OnSuccessStatus& status = edit.mutable_status();
  status.set_phase(v1::FOLLOW_UP_PENDING);
  status.clear_attempt();
  *status.mutable_not_before() = ToProto(edit.in().now + next.delay);
  edit.delta().Requeue(next.delay);
  if (next.charge == Charge::kNothing) return;
  const bool lost = next.charge == Charge::kPreemption;
  edit.Say(!lost, lost ? "OnSuccessPreempted" : "OnSuccessAttemptFailed",
           absl::StrCat(AttemptWords(edit.attempt()), " of ", status.name(), ": ", how,
                        "; it is run again"));
}

// In the words of a Job, where the policy has those of a trial.
std::string FollowUpReason(const NextStep& next) {
  if (next.reason == "TrialFailed") return "BackoffLimitExceeded";
  if (next.reason == "KilledByUser") return "StoppedByUser";
  return next.reason;
}

void FinishFollowUpAttempt(FollowUpEdit& edit, const AttemptStatus& observed) {
  edit.delta().effects().forget.push_back(observed.key);
  edit.ChangeAttempt([&](v1::Attempt& attempt) {
    attempt.set_state(v1::ATTEMPT_CLOSED);
    *attempt.mutable_end_time() =
        observed.placement.has_end_time() ? observed.placement.end_time() : ToProto(edit.in().now);
    if (observed.placement.has_start_time()) {
      *attempt.mutable_start_time() = observed.placement.start_time();
      attempt.clear_placements();
      *attempt.add_placements() = observed.placement;
      *attempt.mutable_placements(0)->mutable_end_time() = attempt.end_time();
    }
    attempt.set_cause(Classify(attempt, {.platform = observed.platform,
                                         .lost = observed.state == AttemptStatus::State::kLost,
                                         .exit_code = observed.exit_code,
                                         .signal = observed.signal,
                                         .out_of_memory = observed.out_of_memory}));
    CloseAccounts(attempt, v1::Trial(), observed.ran, std::nullopt);
  });
  const NextStep next = StepAfter(edit, observed);
  const std::string how = EndWords(edit.attempt(), observed);
  ChargeFollowUp(edit, next);
  if (next.kind == NextStep::Kind::kRetry) return RetryFollowUp(edit, next, how);
  const std::string name = edit.status().name();
  if (next.phase == v1::TRIAL_SUCCEEDED) {
    return edit.End(v1::FOLLOW_UP_SUCCEEDED, "Completed",
                    absl::StrCat(name, " has completed, with the parameters of ",
                                 edit.status().best_trial_name()));
  }
  edit.End(v1::FOLLOW_UP_FAILED, FollowUpReason(next),
           absl::StrCat(AttemptWords(edit.attempt()), " of ", name, ": ", how,
                        "; its log: shirabe logs ", edit.in().state.key().name, "/on-success"));
}

// As ObserveMissing (pass_observe.cc) for trials.
void ObserveMissingFollowUp(FollowUpEdit& edit) {
  if (edit.attempt().state() != v1::ATTEMPT_RUNNING && !edit.attempt().has_stop()) {
    return edit.memory().Enter(AttemptPhase::kRecorded);
  }
  edit.delta().effects().adopt.push_back(edit.attempt());
  edit.delta().Requeue(absl::ZeroDuration());
}

bool FollowUpNeverRan(const v1::Attempt& attempt, const AttemptStatus& observed) {
  return observed.state == AttemptStatus::State::kLost && attempt.state() != v1::ATTEMPT_RUNNING &&
         observed.placement.pid() == 0 && !attempt.has_stop();
}

}  // namespace

v1::Trial FollowUpAsTrial(const ExperimentState& state) {
  const v1::OnSuccessStatus& status = state.experiment().status().shirabe().on_success();
  v1::Trial trial;
  trial.set_namespace_(state.key().ns);
  trial.set_experiment(state.key().name);
  trial.set_number(kFollowUpNumber);
  trial.set_attempts(status.attempts());
  trial.set_failures(status.failures());
  trial.set_preemptions(status.preemptions());
  trial.set_fruitless(status.preemptions());
  trial.set_yields(status.yields());
  return trial;
}

void FollowUpEdit::End(v1::FollowUpPhase phase, const std::string& reason,
                       const std::string& message) {
  v1::OnSuccessStatus& status = mutable_status();
  status.set_phase(phase);
  status.set_reason(reason);
  status.set_message(message);
  status.clear_waiting();
  status.clear_not_before();
  status.clear_attempt();
  memory() = AttemptMemory{};
  *status.mutable_completion_time() = ToProto(in_.now);
  const bool good = phase == v1::FOLLOW_UP_SUCCEEDED;
  const char* word = good                             ? "OnSuccessSucceeded"
                     : phase == v1::FOLLOW_UP_SKIPPED ? "OnSuccessSkipped"
                                                      : "OnSuccessFailed";
  delta_.AddEvent(!good, word, message);
}

Delta ObserveFollowUp(const PassInput& in, const AttemptStatus* observed) {
  Delta delta(in.state, in.now);
  FollowUpEdit edit(in, delta);
  if (edit.memory().phase == AttemptPhase::kNone) edit.memory().Enter(AttemptPhase::kRecorded);
  if (in.mode.recheck) edit.memory().start_again = absl::ZeroDuration();
  if (observed == nullptr) {
    ObserveMissingFollowUp(edit);
  } else if (FollowUpNeverRan(edit.attempt(), *observed)) {
    delta.effects().forget_lost.push_back(observed->key);
    edit.memory().Enter(AttemptPhase::kRecorded);
  } else if (observed->state != AttemptStatus::State::kRunning) {
    edit.memory().Enter(AttemptPhase::kExited);
    if (observed->placement.has_start_time()) RecordFollowUpRuns(edit, *observed);
    FinishFollowUpAttempt(edit, *observed);
    edit.memory() = AttemptMemory{};
  } else if (observed->placement.has_start_time()) {
    RecordFollowUpRuns(edit, *observed);
    TrimFollowUpLog(edit);
  } else {
    if (edit.memory().phase == AttemptPhase::kRecorded) edit.memory().Enter(AttemptPhase::kStarted);
    edit.SetWaiting(observed->waiting);
  }
  return delta;
}

}  // namespace shirabe::experiment
