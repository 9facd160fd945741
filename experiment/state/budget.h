// Where spec.shirabe.budget.maxCost stops an experiment: once what was spent, and what the running
// attempts will still have cost by the time they could be stopped, reach it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

namespace shirabe::experiment {

// The budget as a plan sees it, in the budget's currency.
struct BudgetState {
  std::optional<double> cap;  // none: nothing below matters
  double spent = 0;           // by closed and by running attempts, until now
  double reserved = 0;        // what the running ones cost until they could be stopped
  double next = 0;            // to be reserved for one more attempt, at the highest price

  // Nothing that runs or may run has a price: the cap keeps nothing.
  bool unpriced() const { return cap && next == 0 && reserved == 0 && spent == 0; }
  // How many more attempts may start, at most `wanted`.
  int64_t Affordable(int64_t wanted) const;
  // What to say where the experiment ends by it: what runs could use up the rest, or nothing runs
  // (`running`) and nothing could be started. None where it goes on. `currency`: "" is USD.
  std::optional<std::string> WhyReached(bool running, const std::string& currency) const;
};

// How long an attempt may run on, at most, after the budget is found to be spent: its grace, and
// the time until the next look.
absl::Duration ReservedTime(absl::Duration grace);

}  // namespace shirabe::experiment
