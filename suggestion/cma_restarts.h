// When one run of CMA-ES has ended, the next: larger, or small and elsewhere. Used by
// suggestion/cma_search.h. A value type.
//
//   λ₀, σ₀   members of a generation and step size of the first run
//   λ_l      members of the latest large run, 2^k λ₀ after k large restarts
//   u        uniform random number
//
// none: there is no next run. ipop: λ doubles with every run; A. Auger, N. Hansen, "A Restart CMA
// Evolution Strategy With Increasing Population Size" (CEC 2005). bipop: beside such large runs
// there are small ones, λ = ⌊λ₀ (λ_l / 2λ₀)^(u²)⌋ and σ = σ₀ 10^(−2u), whenever they have used
// fewer trials than the large ones, each at most half as long as the latest large one; N. Hansen,
// "Benchmarking a BI-Population CMA-ES on the BBOB-2009 Function Testbed" (GECCO 2009).
#pragma once

#include <cstdint>

#include "base/rng.h"
#include "suggestion/cma_record.h"

namespace shirabe::suggestion {

struct CmaRunPlan {
  int64_t population = 0;  // λ
  double sigma = 0;
  int64_t limit = 0;  // trials after which the run ends anyhow; 0 = none
};

class CmaRestarts {
 public:
  enum class Strategy { kNone, kIpop, kBipop };
  CmaRestarts(Strategy strategy, CmaRunPlan first)
      : strategy_(strategy), first_(first), large_population_(first.population) {}

  bool allowed() const { return strategy_ != Strategy::kNone; }
  // After a run that took `trials`. Draws from `rng` in the same way in every case.
  CmaRunPlan Next(int64_t trials, Rng& rng);
  void Fields(CmaRecord& record);

 private:
  Strategy strategy_;
  CmaRunPlan first_;
  int64_t large_population_;  // λ_l
  int64_t large_trials_ = 0;  // of all large runs
  int64_t small_trials_ = 0;
  int64_t latest_large_ = 0;  // of the latest large run
  bool small_ = false;        // the present run
};

}  // namespace shirabe::suggestion
