// What an experiment still wants of an owner once it has ended. Pure functions.
#pragma once

#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

// Whether a notification is still to be delivered.
bool HasPendingNotifications(const v1::Experiment& experiment);

// Whether it has not ended, or something follows its end.
bool NeedsOwner(const v1::Experiment& experiment);

}  // namespace shirabe::experiment
