// Where a user expects the best values of a parameter (spec.shirabe.space.priors), as a density
// over its axis, relative to that of every value being as likely as any other:
//
//   numeric      0.9 N(x; center, σ²) / (Φ((1-center)/σ) - Φ(-center/σ)) + 0.1, on [0, 1], with
//                σ = ½, ¼, ⅛ for low, medium and high confidence
//   categorical  0.9 w_k / (mean of w) + 0.1, where w is 1 for the value that is expected and
//                exp(-½ (½/σ)²) for all others: as if they were half an axis away
//
// The tenth that is even keeps the rest within reach. How algorithms use it: first
// points are drawn from it, and what a model promises later is weighed by it (LogWeight).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "google/protobuf/struct.pb.h"
#include "suggestion/space/axis.h"

namespace shirabe::suggestion {

// Immutable once made; any thread may use it.
class SpacePriors {
 public:
  // kInvalidArgument as "FIELD: what and the fix": no such parameter, a value that it does not
  // have, an unknown confidence.
  static StatusOr<SpacePriors> Create(const Axes& axes, const google::protobuf::Struct& spec);

  bool Has(int axis) const { return beliefs_[axis].has_value(); }
  // The coordinate that is expected; only of an axis that has a prior, as the next three.
  double center(int axis) const { return beliefs_[axis]->center; }
  // The natural logarithm of the density at a coordinate.
  double LogDensity(int axis, double x) const;
  // Its derivative, of a numeric axis.
  double Slope(int axis, double x) const;
  // The coordinate below which a share `u` of the prior lies, u in [0, 1]; of a categorical axis
  // the category.
  double Quantile(int axis, double u) const;

  // What log densities are multiplied by where a model has learned from n ≥ 1 results: the prior
  // counts for as much as ten of them (C. Hvarfner et al., "πBO: Augmenting acquisition functions
  // with user beliefs for Bayesian optimization", 2022, eq. 6, with β = 10).
  static double LogWeight(int64_t n) { return 10.0 / static_cast<double>(n < 1 ? 1 : n); }

 private:
  struct Belief {
    double center = 0;
    double deviation = 0;
    uint64_t categories = 0;  // 0: a numeric axis
    double mass = 0;          // numeric: of the normal distribution within [0, 1]
    double other = 0;         // categorical: the density of each value that is not expected
  };

  static StatusOr<Belief> Read(const Axis& axis, const google::protobuf::Value& spec);
  static double Density(const Belief& belief, double x);
  static double Share(const Belief& belief, double x);  // of the prior that lies below x

  std::vector<std::optional<Belief>> beliefs_;  // by axis
};

}  // namespace shirabe::suggestion
