// From YAML text to the pools of machines of `run --nodes FILE`, in the way of parse_spec.h: every
// problem in one go, each with its place, the value and the fix. Called by the command line. Pure
// functions.
#pragma once

#include <string_view>
#include <vector>

#include "experiment/spec/parse_spec.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

struct ParsedNodes {
  v1::NodePools pools;            // with defaults; complete only if no finding is an error
  std::vector<Finding> findings;  // by line and column
};

// One document. The text has the limits of an Experiment's. A cluster may have no pools at all.
enum class NoPools { kIsAnError, kIsFine };
ParsedNodes ParseNodes(std::string_view text, NoPools none = NoPools::kIsAnError);

}  // namespace shirabe::experiment
