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
// Conditions, forbidden combinations and sums (space_rules.h): an inactive parameter has one
// coordinate in canonical points and is left out of values. What is not allowed is a point all the
// same, which Allows tells; what is counted, At and IndexOf leave it out. Priors (space_priors.h)
// change what is drawn, and nothing else.
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
#include "suggestion/space/space_patterns.h"
#include "suggestion/space/space_priors.h"
#include "suggestion/space/space_rules.h"

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

  // With what spec.shirabe.space says.
  static StatusOr<Space> Create(const v1::ExperimentSpec& spec);
  // The same space with those rules and priors; kInvalidArgument as "FIELD: what and the fix", also
  // where nothing, or less than a thousandth, is left to try.
  StatusOr<Space> WithRules(const v1::SpaceRules& spec) const;

  // The same space where parameter `i`, a numeric one, has these values and no others: not empty,
  // ascending. Of a space without rules, as the next.
  Space WithValues(int i, const std::vector<int64_t>& values) const;
  // The same space without parameter `i`.
  Space Without(int i) const;

  int size() const { return static_cast<int>(axes_.size()); }
  const Axis& axis(int i) const { return *axes_[i]; }
  // The axis of a parameter; null if there is none of that name.
  const Axis* Find(const std::string& name) const;

  // Whether there are conditions, forbidden combinations or sums.
  bool has_rules() const { return rules_ != nullptr; }
  // When a parameter exists, in words; "" = always.
  std::string ConditionOf(int axis) const;
  // By axis, whether the parameter exists at `point`. Here and in the next four the levels of
  // a point are canonical.
  std::vector<bool> Active(const Point& point) const;
  // Gives what does not exist there the one coordinate that stands for none.
  void Neutralize(Point& point) const;
  // Why `point` is not allowed, in words that name the field; "" = it is.
  std::string Forbids(const Point& point) const;
  bool Allows(const Point& point) const { return rules_ == nullptr || rules_->Allows(point); }

  // kInvalidArgument if one of the parameters given does not exist at `point`, or it is forbidden.
  Status CheckValues(const Point& point, const std::vector<bool>& given) const;

  std::vector<v1::Assignment> Decode(const Point& point) const;
  // Assignments in any order; every parameter that exists once, and no other; allowed.
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
  // The canonical point at `unit`, allowed or not, which has one number in [0, 1) a parameter:
  // numeric ones are coordinates already, the categories of one parameter share the interval
  // equally; of a parameter that has a prior, the quantile of that.
  Point FromUnit(const std::vector<double>& unit) const;
  // Every coordinate independently, by its distribution and its prior; canonical.
  Point Sample(Rng& rng) const;

  // Null = there are none.
  const SpacePriors* priors() const { return priors_.get(); }
  // Of a canonical point: the logarithm of the density of what exists there, 0 without priors.
  double LogPrior(const Point& point) const;

 private:
  void Count();
  Status CountAllowed();
  // FromUnit without priors.
  Point Evenly(const std::vector<double>& unit) const;

  Axes axes_;
  using Indices = absl::flat_hash_map<std::string, int>;
  std::shared_ptr<const Indices> indices_;         // of the axes, by name; shared: as above
  std::shared_ptr<const SpaceRules> rules_;        // null = none; shared: as above
  std::shared_ptr<const SpacePatterns> patterns_;  // null = no rules, or not countable
  std::shared_ptr<const SpacePriors> priors_;      // null = none; shared: as above
  Cardinality cardinality_ = {.finite = true, .count = 1};
};

}  // namespace shirabe::suggestion
