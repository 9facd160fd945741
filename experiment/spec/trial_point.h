// Where a trial lies in the space of its experiment as it is now: its ranges may have been changed
// since it was made (status.shirabe.spaceChanges). And points that people write. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/rng.h"
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

// The names of the parameters that have a condition: a point may lack them.
std::set<std::string> ConditionalParameters(const v1::ExperimentSpec& spec);

// Points that people write: spec.shirabe.start of one specification, to read several points of it:
// what is looked for in long lists is found by a hash. The specification outlives it. For one
// point: StartPoint in parse_spec.h.
class StartPoints {
 public:
  // Of one categorical parameter: its values, and those that are numbers by their number.
  struct Categories {
    std::unordered_set<std::string_view> texts;
    std::unordered_map<double, std::string_view> numbers;
  };

  explicit StartPoints(const v1::ExperimentSpec& spec);

  // As StartPoint.
  StatusOr<std::vector<v1::Assignment>> Read(int index) const;
  // The values of some parameters, in the order of the specification.
  StatusOr<std::vector<v1::Assignment>> ReadSome(const google::protobuf::Struct& fields) const;

 private:
  Status CheckNames(const google::protobuf::Struct& fields) const;

  const v1::ExperimentSpec& spec_;
  const std::set<std::string> conditional_;
  std::vector<Categories> categories_;  // of each parameter; empty for those of other types
};

// Where a person wants a trial: the values of some parameters, in the place of those of `point`.
// kInvalidArgument, with the parameter, for what is not in the space, does not exist there, or is
// forbidden.
StatusOr<suggestion::Point> WithValues(const v1::ExperimentSpec& spec,
                                       const suggestion::Space& space,
                                       const google::protobuf::Struct& fields,
                                       suggestion::Point point);
// The same with the others at random, such that the given ones exist.
StatusOr<suggestion::Point> SampleWithValues(const v1::ExperimentSpec& spec,
                                             const suggestion::Space& space,
                                             const google::protobuf::Struct& fields, Rng rng);

}  // namespace shirabe::experiment
