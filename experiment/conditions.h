// The name of an experiment, and how it stands by its conditions. Pure functions.
#pragma once

#include "base/names.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

ExperimentKey KeyOf(const v1::Experiment& experiment);
// Succeeded or Failed is True.
bool IsEnded(const v1::Experiment& experiment);
// The newest condition that is True; Created where there is none.
v1::Condition CurrentCondition(const v1::Experiment& experiment);

// Whether a notification is still to be delivered.
bool HasPendingNotifications(const v1::Experiment& experiment);
// Whether spec.shirabe.onSuccess is still to be run, or runs.
bool HasPendingFollowUp(const v1::Experiment& experiment);
// Whether it has not ended, or something follows its end.
bool NeedsOwner(const v1::Experiment& experiment);

}  // namespace shirabe::experiment
