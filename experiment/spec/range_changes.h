// What may change of a search space while its experiment runs: the ends of a range, and the values
// of a list. Pure functions of specifications.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

using ParameterChanges = google::protobuf::RepeatedPtrField<v1::ParameterChange>;

// The parameters of the experiment with these changes; what a change does not give stays.
// kInvalidArgument, naming the field and the fix, for what is no range of that parameter, what the
// rest of the specification does not allow, and what cannot change: the type, a step, a
// distribution, a resource that rungs or generations are made of, and anything that a remote
// algorithm was told.
StatusOr<v1::ExperimentSpec> WithChanges(const v1::Experiment& experiment,
                                         const ParameterChanges& changes);

// From one specification to another that differs in them alone: CheckSameExperiment.
ParameterChanges ChangesBetween(const v1::ExperimentSpec& stored, const v1::ExperimentSpec& wanted);

// "lr 0.001 .. 0.1 -> 0.001 .. 0.5, optimizer sgd, adam -> sgd"; "" where nothing differs.
std::string DescribeChanges(const v1::ExperimentSpec& before, const v1::ExperimentSpec& after);

// NAME=RANGE of the command line as a change: 1e-5..0.5, ..0.5, 1e-5.. or a,b,c.
StatusOr<v1::ParameterChange> ParseChangeFlag(const std::string& text);

}  // namespace shirabe::experiment
