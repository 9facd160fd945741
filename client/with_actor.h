// Who asks for something, in what is asked of a store: the user of the client, where no other is
// named. Pure functions.
#pragma once

#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

// Of an experiment that is submitted, status.shirabe.createdBy says it.
v1::Experiment WithActor(const v1::Actor& actor, v1::Experiment experiment);
v1::Intent WithActor(const v1::Actor& actor, v1::Intent intent);

}  // namespace shirabe::client
