// What an administrator lets experiments take, so that none of them takes what the others need. A
// number that is reached holds trials back: the experiment waits and says so. 0 = any number. Data;
// set by `serve` and `controller`, applied by the controller of the experiments and when one is
// submitted.
#pragma once

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace shirabe::experiment {

struct Limits {
  int64_t parallel_trials = 1000;            // of an experiment, at the same time
  int64_t namespace_parallel_trials = 5000;  // of all experiments of a namespace, in this process
  int64_t trials = 1'000'000;                // of an experiment, in all
  int64_t experiments = 10'000;              // of a namespace, those that have ended included
};

// More than any administrator allows: what says so is refused at once, as a slip.
inline constexpr int64_t kMaxParallelTrials = 1'000'000;
inline Status CheckParallel(int64_t parallel) {
  if (parallel <= kMaxParallelTrials) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      parallel, " trials at the same time are more than ", kMaxParallelTrials, ": lower it"));
}

// Trials that one pass makes, and the attempts of old ones that it starts: more follow in the next
// pass, after what came meanwhile.
inline constexpr int kMaxNewTrials = 32;

}  // namespace shirabe::experiment
