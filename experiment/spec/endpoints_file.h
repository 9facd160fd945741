// From YAML text to the endpoints of --notifications FILE, in the way of parse_spec.h: every
// problem in one go, each with its place, the value and the fix. Called by the command line. Pure
// functions.
#pragma once

#include <string_view>
#include <vector>

#include "experiment/spec/parse_spec.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

struct ParsedEndpoints {
  v1::NotificationEndpoints endpoints;  // with defaults; complete only if no finding is an error
  std::vector<Finding> findings;        // by line and column
};

// One document. The text has the limits of an Experiment's. Files that it names are not opened.
ParsedEndpoints ParseEndpoints(std::string_view text);

}  // namespace shirabe::experiment
