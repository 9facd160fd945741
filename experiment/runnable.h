// Whether a valid specification can run as processes of this machine. Asked before it is stored, by
// the command line and by the server's doors. Pure.
#pragma once

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

// Whether this build can run it on this machine: the algorithm, the stopping rule and the collector
// are there, and the template says what to execute. kInvalidArgument, with what is at hand.
Status CheckRunnable(const v1::Experiment& experiment);

}  // namespace shirabe::experiment
