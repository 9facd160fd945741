#include "experiment/state/retry_policy.h"

#include <algorithm>
#include <csignal>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "base/backoff.h"
#include "experiment/spec/trial_result.h"

namespace shirabe::experiment {
namespace {

constexpr int kDefaultMaxPreemptions = 100;
// Programs that yield this often in a row without a newer checkpoint are not getting anywhere.
constexpr int kMaxFruitlessYields = 3;

int MaxPreemptions(const v1::AttemptPolicy& policy) {
  return policy.has_max_preemptions() ? policy.max_preemptions() : kDefaultMaxPreemptions;
}

// 1, 2, 4 … times `first`, at most kMaxAttemptDelay; spread by trial so that a storm does not
// return as one wave.
absl::Duration SpreadBackoff(absl::Duration first, int losses, const v1::Trial& trial) {
  const double seconds = absl::ToDoubleSeconds(Backoff{first, kMaxAttemptDelay}.Delay(losses));
  const double spread = 0.5 + 0.5 * static_cast<double>(trial.number() % 1000 * 7919 % 1000) / 1000;
  return absl::Seconds(seconds * spread);
}

NextStep Finish(v1::TrialPhase phase, std::string reason) {
  return {.kind = NextStep::Kind::kFinish, .phase = phase, .reason = std::move(reason)};
}

NextStep Retry(NextStep::Charge charge, absl::Duration delay = absl::ZeroDuration()) {
  return {.kind = NextStep::Kind::kRetry, .delay = delay, .charge = charge};
}

NextStep AfterFailure(const v1::Trial& trial, const v1::AttemptPolicy& policy,
                      const std::string& reason) {
  if (trial.failures() < policy.max_failures()) return Retry(NextStep::Charge::kFailure);
  NextStep step = Finish(v1::TRIAL_FAILED, reason);
  step.charge = NextStep::Charge::kFailure;
  return step;
}

NextStep AfterLoss(const v1::Trial& trial, const v1::AttemptPolicy& policy, absl::Duration delay) {
  if (trial.preemptions() < MaxPreemptions(policy)) {
    return Retry(NextStep::Charge::kPreemption, delay);
  }
  NextStep step = Finish(v1::TRIAL_KILLED, "MaxPreemptionsReached");
  step.charge = NextStep::Charge::kPreemption;
  return step;
}

// A machine that is taken away is replaced at once; one after another, with nothing gained between
// them, less and less eagerly.
absl::Duration DelayAfterPreemption(const v1::Trial& trial) {
  if (trial.fruitless() == 0) return absl::ZeroDuration();
  return SpreadBackoff(absl::Milliseconds(250), trial.fruitless() - 1, trial);
}

// From the exit alone.
v1::Cause ClassifyExit(const EndFacts& facts) {
  if (facts.lost) return v1::UNKNOWN_CAUSE;
  if (facts.out_of_memory) return v1::OOM;
  if (facts.signal != 0) {
    // These were not sent from here: a machine going down, an operator, a limit of the kernel.
    const bool outside = facts.signal == SIGKILL || facts.signal == SIGTERM;
    return outside ? v1::UNKNOWN_CAUSE : v1::APP_ERROR;
  }
  if (!facts.exit_code.has_value()) return v1::UNKNOWN_CAUSE;
  switch (*facts.exit_code) {
    case 0: return v1::COMPLETED;
    case kExitYielded: return v1::YIELDED;
    case 128 + SIGKILL:
    case 128 + SIGTERM: return v1::UNKNOWN_CAUSE;  // a shell passing on what killed its child
    default: return v1::APP_ERROR;
  }
}

}  // namespace

v1::Cause Classify(const v1::Attempt& attempt, const EndFacts& facts) {
  v1::Cause cause = ClassifyExit(facts);
  if (facts.platform != v1::CAUSE_NONE) cause = facts.platform;
  if (attempt.has_stop()) cause = attempt.stop().cause();
  const bool again = IsLoss(cause) || cause == v1::SUSPENDED || cause == v1::YIELDED;
  return facts.done && again ? v1::COMPLETED : cause;
}

bool IsLoss(v1::Cause cause) {
  switch (cause) {
    case v1::PREEMPTED_SCHEDULER:
    case v1::PREEMPTED_EVICTION:
    case v1::PREEMPTED_NODE:
    case v1::PREEMPTED_SPOT:
    case v1::INFRASTRUCTURE:
    case v1::UNKNOWN_CAUSE: return true;
    default: return false;
  }
}

bool WantsOnDemand(const v1::Trial& trial, const v1::ShirabeSpec& spec) {
  const v1::AttemptPolicy& policy = spec.attempts();
  if (policy.has_on_demand_after() && trial.preemptions() >= policy.on_demand_after()) return true;
  return spec.capacity().spot() != v1::REQUIRED && trial.fruitless() >= kNoProgressAfter;
}

NextStep Next(v1::Cause cause, const v1::Trial& trial, const v1::AttemptPolicy& policy) {
  switch (cause) {
    case v1::COMPLETED: return Finish(v1::TRIAL_SUCCEEDED, "TrialSucceeded");
    case v1::EARLY_STOPPED: return Finish(v1::TRIAL_EARLY_STOPPED, kStoppedByRule);
    case v1::YIELDED:
      if (trial.yields() + 1 >= kMaxFruitlessYields) {
        return AfterFailure(trial, policy, "YieldedWithoutProgress");
      }
      return Retry(NextStep::Charge::kYield);
    case v1::PREEMPTED_SCHEDULER:
    case v1::PREEMPTED_EVICTION:
    case v1::PREEMPTED_NODE:
    case v1::PREEMPTED_SPOT: return AfterLoss(trial, policy, DelayAfterPreemption(trial));
    case v1::SUSPENDED: return Retry(NextStep::Charge::kNothing);
    case v1::NEVER_RAN: return Retry(NextStep::Charge::kNothing, absl::Seconds(1));
    case v1::OOM: return AfterFailure(trial, policy, "OutOfMemory");
    case v1::APP_ERROR: return AfterFailure(trial, policy, "TrialFailed");
    case v1::USER: return Finish(v1::TRIAL_KILLED, "KilledByUser");
    case v1::EXPERIMENT_ENDED: return NextAfterStop(kExperimentEnded, trial);
    default:  // INFRASTRUCTURE, UNKNOWN_CAUSE
      return AfterLoss(trial, policy, SpreadBackoff(absl::Seconds(1), trial.preemptions(), trial));
  }
}

NextStep NextAfterStop(const std::string& trial_reason, const v1::Trial& trial) {
  if (trial.has_objective()) return Finish(v1::TRIAL_EARLY_STOPPED, trial_reason);
  if (trial_reason == kTimeLimit) return Finish(v1::TRIAL_FAILED, "DeadlineExceeded");
  return Finish(v1::TRIAL_KILLED, trial_reason);
}

NextStep NextAfterDeadline(Deadline deadline, const v1::Trial& trial,
                           const v1::AttemptPolicy& policy) {
  if (deadline == Deadline::kPod) return AfterFailure(trial, policy, "DeadlineExceeded");
  NextStep step = Finish(v1::TRIAL_FAILED, "DeadlineExceeded");
  step.charge = NextStep::Charge::kFailure;
  return step;
}

std::string CauseWord(v1::Cause cause) {
  if (cause == v1::UNKNOWN_CAUSE) return "unknown";
  if (cause == v1::CAUSE_NONE) return "";
  return absl::StrReplaceAll(absl::AsciiStrToLower(v1::Cause_Name(cause)), {{"_", "-"}});
}

}  // namespace shirabe::experiment
