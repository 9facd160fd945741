// What an attempt has taken, in seconds and money, and where. Used by the views and the charts.
// Pure functions.
#pragma once

#include "absl/time/time.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

struct Spending {
  double seconds = 0;
  double cost = 0;
  double on_demand_cost = 0;  // of the same seconds
};

// As the ledger has it once the attempt is closed; until then, what it has come to by now.
Spending SpendingOf(const v1::Attempt& attempt, absl::Time now);

// Its last placement; an empty one where it has none yet.
v1::Placement PlacementOf(const v1::Attempt& attempt);

}  // namespace shirabe::client
