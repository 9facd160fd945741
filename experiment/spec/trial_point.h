// Where a trial lies in the space of its experiment as it is now: its ranges may have been changed
// since it was made (status.shirabe.spaceChanges). Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "suggestion/space/search_space.h"

namespace shirabe::experiment {

struct TrialPoint {
  suggestion::Point point;
  bool earlier = false;  // it was made before the last change
  bool outside = false;  // it lies beyond the ranges: `point` is the nearest one within
};

// `changes`: how often the ranges have been changed. A point of that age is taken as it is; an
// older one is made from the trial's values, so that it is the same for every reader.
TrialPoint PointIn(const suggestion::Space& space, int64_t changes, const v1::Trial& trial);

// The same for a trial that is to be tried again, or to be like: kFailedPrecondition if it lies
// outside.
StatusOr<TrialPoint> CheckedPoint(const suggestion::Space& space, int64_t changes,
                                  const v1::Trial& trial);

// What its algorithm gave it beside the point: labels, and where that searches architectures, which
// are no points, its assignments (suggestion/remote/remote_algorithm.h).
std::vector<std::pair<std::string, std::string>> LabelsFor(const v1::Trial& trial,
                                                           const suggestion::Space& space);

}  // namespace shirabe::experiment
