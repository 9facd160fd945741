// From what was found of an attempt to what callers of an Executor see of it. Pure functions.
#pragma once

#include "absl/time/time.h"
#include "trial/executor.h"
#include "trial/records.h"

namespace shirabe::trial {

// Brings `sighting` up to date. A start time it has stays, and the end is never before it, whatever
// the wall clock did meanwhile; `now` is the end of an attempt that nobody saw ending.
void UpdateSighting(const Found& found, absl::Time now, Sighting& sighting);

}  // namespace shirabe::trial
