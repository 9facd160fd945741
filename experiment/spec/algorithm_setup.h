// What an algorithm is built from, out of a specification that is valid, and the algorithm itself:
// one of the registry, or a remote one (suggestion/remote/remote_algorithm_table.h).
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/algorithm.h"

namespace shirabe::experiment {

suggestion::Settings SettingsOf(const google::protobuf::RepeatedPtrField<v1::Setting>& from);

// With the space as the parameters specify it.
StatusOr<suggestion::Problem> ProblemOf(const v1::ExperimentSpec& spec);
suggestion::Problem MakeProblem(const v1::ExperimentSpec& spec, suggestion::Space space);

struct AlgorithmSetup {
  std::unique_ptr<suggestion::Algorithm> algorithm;
  suggestion::Space space;    // that it searches
  std::string endpoint = {};  // of a remote one; "" = it is in this process
};

// A remote algorithm that is not allowed here any more is one that fails whenever it is asked: what
// runs of the experiment goes on.
StatusOr<AlgorithmSetup> MakeAlgorithm(const v1::Experiment& experiment);

// The space that the algorithm searches: where the points of this experiment's trials lie.
StatusOr<suggestion::Space> SearchSpaceOf(const v1::ExperimentSpec& spec);

}  // namespace shirabe::experiment
