// What an experiment costs. The ledger: what each attempt gained and cost, summed up for its trial
// and its experiment; costs are seconds × price, whatever became of the attempt. And the budget,
// which the plan asks (experiment/plan.cc). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::experiment {

// Completes the record of an attempt that has ended, with cause, times, placements and last_step
// set: seconds (`ran` where it is known, else by the wall clock, which may have been set), cost,
// steps and what was wasted. `trial` is as it was before; `last_save` is the time of the attempt's
// last checkpoint, if it left any.
void CloseAccounts(v1::Attempt& attempt, const v1::Trial& trial, std::optional<absl::Duration> ran,
                   std::optional<absl::Time> last_save);

// Adds a closed attempt to the sums of its trial and of the experiment.
void Charge(const v1::Attempt& attempt, v1::Trial& trial, v1::ShirabeStatus& status);

// Whether it is known where it runs, and so at what price.
bool IsPlaced(const v1::Placement& placement);
bool IsPlaced(const v1::Attempt& attempt);
// Whether it is a process of this machine.
bool IsOnThisMachine(const v1::Attempt& attempt);

double CostOf(absl::Duration ran, double price_per_hour);

// Where spec.shirabe.budget.maxCost stops an experiment: once what was spent, and what the running
// attempts will still have cost by the time they could be stopped, reach it. Pure.
//
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
