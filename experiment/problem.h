// What an algorithm is built from, out of a specification that is valid. Pure functions.
#pragma once

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/algorithm.h"

namespace shirabe::experiment {

suggestion::Settings SettingsOf(const google::protobuf::RepeatedPtrField<v1::Setting>& from);

// With the space as the parameters specify it.
StatusOr<suggestion::Problem> ProblemOf(const v1::ExperimentSpec& spec);

// The space that the algorithm searches: where the points of this experiment's trials lie.
StatusOr<suggestion::Space> SearchSpaceOf(const v1::ExperimentSpec& spec);

}  // namespace shirabe::experiment
