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
  bool lost = false;             // gone, and nobody saw how
  std::optional<int> exit_code;  // of the program, where it exited
  int signal = 0;                // that ended it, where one did
  bool out_of_memory = false;    // the kernel's out-of-memory killer struck
};

// The exit code of a program that has saved its state and wants to be run again (EX_TEMPFAIL).
inline constexpr int kExitYielded = 75;

// Our own intent decides where there is one, whatever the exit code; then the exit code; and what
// nobody can tell is UNKNOWN_CAUSE, which counts as lost to the platform.
v1::Cause Classify(const v1::Attempt& attempt, const EndFacts& facts);

// No retry waits longer than this. A later time in the store was written before the wall clock was
// set back, and is no reason to wait.
inline constexpr absl::Duration kLongestDelay = absl::Minutes(1);

struct NextStep {
  enum class Kind { kFinish, kRetry };
  Kind kind = Kind::kFinish;
  v1::TrialPhase phase = v1::TRIAL_PENDING;  // kFinish: TRIAL_SUCCEEDED may become another,
                                             // once its metrics are looked at
  absl::Duration delay;                      // kRetry: not before
  enum class Charge { kNothing, kFailure, kPreemption, kYield } charge = Charge::kNothing;
  std::string reason;  // CamelCase, for the trial's condition
};

// cause × budgets → next step. `trial` holds the counts before this attempt's end.
NextStep Next(v1::Cause cause, const v1::Trial& trial, const v1::AttemptPolicy& policy);

// UNKNOWN_CAUSE as "unknown", PREEMPTED_SPOT as "preempted-spot": the words of the documentation.
std::string CauseWord(v1::Cause cause);

}  // namespace shirabe::experiment
