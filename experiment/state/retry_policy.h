// Why an attempt ended, and what that means for its trial: all retry policy, in two pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::experiment {

// What was seen of the end of an attempt.
struct EndFacts {
  v1::Cause platform = v1::CAUSE_NONE;  // PREEMPTED_*: its machine was taken away
  bool done = false;                    // the program said that it has finished
  bool lost = false;                    // gone; its end was not seen
  std::optional<int> exit_code;         // of the program, where it exited
  int signal = 0;                       // that ended it, where one did
  bool out_of_memory = false;           // the kernel's out-of-memory killer struck
};

// Whose activeDeadlineSeconds an attempt has outrun.
enum class Deadline { kNone, kJob, kPod };

// The exit code of a program that has saved its state and wants to be run again (EX_TEMPFAIL).
inline constexpr int kExitYielded = 75;

// Our own intent decides where there is one, then the platform's act, whatever the exit code; then
// the exit code; and what cannot be told is UNKNOWN_CAUSE, which counts as lost to the platform. A
// program that said it was done before it was stopped or lost, to be run again, has completed.
v1::Cause Classify(const v1::Attempt& attempt, const EndFacts& facts);

// After so many losses in a row without a newer checkpoint the trial is said not to progress, and
// on-demand machines are asked for where the specification allows them.
inline constexpr int kNoProgressAfter = 3;

// No retry waits longer than this. A later time in the store was written before the wall clock was
// set back, and is no reason to wait.
inline constexpr absl::Duration kMaxAttemptDelay = absl::Minutes(1);

struct NextStep {
  enum class Kind { kFinish, kRetry };
  Kind kind = Kind::kFinish;
  v1::TrialPhase phase = v1::TRIAL_PENDING;  // kFinish: TRIAL_SUCCEEDED may become another,
                                             // once its metrics are looked at
  absl::Duration delay;                      // kRetry: not before
  enum class Charge { kNothing, kFailure, kPreemption, kYield } charge = Charge::kNothing;
  std::string reason;  // CamelCase, for the trial's condition
};

// cause × budgets → next step. `trial` holds the counts before this attempt's end; its `fruitless`
// and `yields` are 0 if the attempt has left a newer checkpoint.
NextStep Next(v1::Cause cause, const v1::Trial& trial, const v1::AttemptPolicy& policy);

// The same for an APP_ERROR that is the end of a time limit. As in Kubernetes a Job that is too
// slow has failed for good; a pod that is has failed like any other.
NextStep NextAfterDeadline(Deadline deadline, const v1::Trial& trial,
                           const v1::AttemptPolicy& policy);

// One that we ended early, where there is more to say than that a rule of early stopping wanted it:
// a trial without a value that counts is not stopped early, it has failed or was killed.
inline constexpr char kTimeLimit[] = "TimeLimit";  // spec.shirabe.limits.trialSeconds
inline constexpr char kStoppedByUser[] = "StoppedByUser";
inline constexpr char kExperimentEnded[] = "ExperimentEnded";    // whatever ended it
inline constexpr char kBreaksConstraint[] = "ConstraintBroken";  // constraints[].stopEarly
NextStep NextAfterStop(const std::string& trial_reason, const v1::Trial& trial);

// Whether the platform took it: the causes that use maxPreemptions.
bool IsLoss(v1::Cause cause);

// Whether the next attempt is to ask for on-demand machines.
bool WantsOnDemand(const v1::Trial& trial, const v1::ShirabeSpec& spec);

// UNKNOWN_CAUSE as "unknown", PREEMPTED_SPOT as "preempted-spot": the words of the documentation.
std::string CauseWord(v1::Cause cause);

}  // namespace shirabe::experiment
