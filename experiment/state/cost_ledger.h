// The ledger: what each attempt gained and cost, summed up for its trial and its experiment. Costs
// are seconds × price, whatever became of the attempt. Pure functions.
#pragma once

#include <optional>

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

}  // namespace shirabe::experiment
