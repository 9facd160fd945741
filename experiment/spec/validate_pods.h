// What becomes of a trial of several pods in a cluster, before there is one. Called by
// validate_rules.cc. A pure function of the message.
#pragma once

#include "experiment/spec/findings.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

// Whether its object is refused there, and what it must do without; the code that makes the object
// says so. Only where all else is right.
void CheckPods(const v1::ExperimentSpec& spec, Findings& findings);

}  // namespace shirabe::experiment
