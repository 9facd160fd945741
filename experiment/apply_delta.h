// The one place where the steps of a pass change the state of an experiment.
#pragma once

#include "experiment/state/experiment_state.h"
#include "experiment/state/pass_delta.h"

namespace shirabe::experiment {

// What a delta, made from this state as it is, says to write goes into the records and the batch of
// the next Commit; what it says to do is returned.
Effects Apply(Delta delta, ExperimentState& state);

}  // namespace shirabe::experiment
