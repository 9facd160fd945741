// The search space, and the one codec between the unit cube, where algorithms live, and typed
// values, where trials live. Immutable once made; any thread may use it; it copies what it needs.
//
// A point has one coordinate a parameter, in the order of the specification. Numeric coordinates
// are in [0, 1], uniform under the parameter's distribution; a categorical one is an index.
// Decode(Encode(v)) is v for every feasible v; 0 and 1 decode to min and max exactly; stepped
// values are min + k·step computed in decimal, so that 0.1 + 2·0.1 is 0.3. Integers, steps and
// lists share the unit interval among their n values in proportion to the distribution's mass.
// Where several doubles have the same continuous coordinate (there are more of them in [-1, 1] than
// in [0, 1]), the one that is the shortest decimal stands for all: 0.01 comes back as 0.01.
//
// normal: mean (min+max)/2, standard deviation (max-min)/6, truncated to [min, max]; logNormal is
// the same for the logarithm.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/rng.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "suggestion/space/axis.h"

namespace shirabe::suggestion {

using Point = std::vector<double>;

// How many distinct points there are. Exact; `finite` is false where a continuous parameter makes
// it infinite, or where the count does not fit 64 bits.
struct Cardinality {
  bool finite = false;
  uint64_t count = 0;
};

class Space {
 public:
  // kInvalidArgument, naming the parameter, if the specification is not a space. What
  // experiment/spec/parse_spec has validated never fails.
  static StatusOr<Space> Create(
      const google::protobuf::RepeatedPtrField<v1::ParameterSpec>& parameters);

  // The same space where parameter `i`, a numeric one, has these values and no others: not empty,
  // ascending.
  Space WithValues(int i, const std::vector<int64_t>& values) const;
  // The same space without parameter `i`.
  Space Without(int i) const;

  int size() const { return static_cast<int>(axes_.size()); }
  const Axis& axis(int i) const { return *axes_[i]; }
  // The axis of a parameter; null if there is none of that name.
  const Axis* Find(const std::string& name) const;

  std::vector<v1::Assignment> Decode(const Point& point) const;
  // Assignments in any order; every parameter once.
  StatusOr<Point> Encode(const std::vector<v1::Assignment>& assignments) const;
  // The coordinates of the values that `point` decodes to: equal for equal values.
  Point Canonical(const Point& point) const;
  // Equal exactly for points that decode to the same values (up to hash collisions, 2^-64).
  uint64_t Key(const Point& point) const;

  Cardinality cardinality() const { return cardinality_; }
  // Point `index` of a finite space; the last parameter varies fastest. index < count.
  Point At(uint64_t index) const;
  // The reverse of At.
  uint64_t IndexOf(const Point& point) const;
  // The canonical point at `unit`, which has one number in [0, 1) a parameter: numeric ones are
  // coordinates already, the categories of one parameter share the interval equally.
  Point FromUnit(const std::vector<double>& unit) const;
  // Every coordinate independently, by its distribution; canonical.
  Point Sample(Rng& rng) const;

 private:
  void Count();

  std::vector<std::shared_ptr<const Axis>> axes_;  // shared: a copy of a space is cheap and const
  using Indices = absl::flat_hash_map<std::string, int>;
  std::shared_ptr<const Indices> indices_;  // of the axes, by name; shared: as above
  Cardinality cardinality_ = {.finite = true, .count = 1};
};

}  // namespace shirabe::suggestion
