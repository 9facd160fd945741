// Points that people write. spec.shirabe.start of one specification, to read several points of it:
// what is looked for in long lists is found by a hash. The specification outlives it. For one
// point: StartPoint in parse_spec.h.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/rng.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/space/search_space.h"

namespace shirabe::experiment {

// The names of the parameters that have a condition: a point may lack them.
std::set<std::string> ConditionalParameters(const v1::ExperimentSpec& spec);

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
