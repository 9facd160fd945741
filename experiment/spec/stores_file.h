// From YAML text to the stores of an administrator's file (--stores FILE), in the way of
// parse_spec.h: every problem in one go, each with its place, the value and the fix. What a type of
// store asks of its entry, and whether its credentials are there, is for artifacts/store_table.h.
// Called by the command line. Pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "experiment/spec/parse_spec.h"
#include "proto/shirabe/v1/artifacts.pb.h"

namespace shirabe::experiment {

struct ParsedStores {
  v1::ArtifactStores stores;      // complete only if no finding is an error
  std::vector<Finding> findings;  // by line and column
};

// One document. The text has the limits of an Experiment's.
ParsedStores ParseStores(std::string_view text);

}  // namespace shirabe::experiment
