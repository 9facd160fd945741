// spec.shirabe.start: points to try first, written by a person (text → typed → unit). Pure.
#pragma once

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/space.h"

namespace shirabe::experiment {

// Start point `index`. kInvalidArgument, naming the parameter, its value and the fix, if it is not
// complete or not feasible.
StatusOr<suggestion::Point> StartPoint(const v1::Experiment& experiment,
                                       const suggestion::Space& space, int index);

}  // namespace shirabe::experiment
