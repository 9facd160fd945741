// From YAML text to what is given in files beside experiments (run, serve, controller), in the way
// of parse_spec.h: every problem in one go, each with its place, the value and the fix. Called by
// the command line. Pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "experiment/spec/parse_spec.h"
#include "proto/shirabe/v1/artifacts.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

// The endpoints of --notifications FILE.
struct ParsedEndpoints {
  v1::NotificationEndpoints endpoints;  // with defaults; complete only if no finding is an error
  std::vector<Finding> findings;        // by line and column
};

// One document. The text has the limits of an Experiment's. Files that it names are not opened.
ParsedEndpoints ParseEndpoints(std::string_view text);

// The pools of machines of --nodes FILE.
struct ParsedNodes {
  v1::NodePools pools;            // with defaults; complete only if no finding is an error
  std::vector<Finding> findings;  // by line and column
};

// One document. The text has the limits of an Experiment's. A cluster may have no pools at all.
enum class NoPools { kIsAnError, kIsFine };
ParsedNodes ParseNodes(std::string_view text, NoPools none = NoPools::kIsAnError);

// The stores of --stores FILE. What a type of store asks of its entry, and whether its credentials
// are there, is for artifacts/store_table.h.
struct ParsedStores {
  v1::ArtifactStores stores;      // complete only if no finding is an error
  std::vector<Finding> findings;  // by line and column
};

// One document. The text has the limits of an Experiment's.
ParsedStores ParseStores(std::string_view text);

}  // namespace shirabe::experiment
