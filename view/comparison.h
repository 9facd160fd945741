// Trials or experiments side by side: what differs between their parameters, what they came to and
// what they cost; of experiments also the best so far after equally many trials, since the larger
// one of two searches always looks better. Called by the command line. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "view/record_json.h"

namespace shirabe::view {

// A trial and its experiment, which need not be that of the others.
struct ComparedTrial {
  v1::Experiment experiment;
  v1::Trial trial;
};

struct ComparedExperiment {
  v1::Experiment experiment;
  std::vector<v1::Trial> trials;  // all of them, by number
};

// The best objective among the first `count` trials that have ended, in the order in which they
// were made; nullopt if none of them has one.
std::optional<double> BestAfter(const ComparedExperiment& compared, int64_t count);

// The counts of ended trials at which all of them are compared: 1, 2, 5, 10, 20, … and the most
// that all have. Empty if one has none.
std::vector<int64_t> EqualCounts(const std::vector<ComparedExperiment>& compared);

// One row a property, one column each; with `all`, also the parameters that do not differ.
std::string CompareTable(const std::vector<ComparedTrial>& compared, bool all);
std::string CompareTable(const std::vector<ComparedExperiment>& compared, bool all);

// {kind: Comparison, of, differs: [names of parameters], items: [{name, …}]}; of experiments also
// bestAfter: [{trials, values: [one an item, null where there is none]}].
Json CompareJson(const std::vector<ComparedTrial>& compared);
Json CompareJson(const std::vector<ComparedExperiment>& compared);

}  // namespace shirabe::view
