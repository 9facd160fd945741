// How probability is spread over an interval of the real line: evenly, or as a normal distribution
// cut off at both ends. It maps values of the interval to [0, 1] (Cdf) and back (Quantile). Used by
// the axes of a space. Immutable, any thread.
//
//   t          position in [lo, hi], any unit          x   probability in [0, 1]
//   z          (t - mean) / deviation                  Φ   standard normal distribution function
//
// Uniform: x = (t - lo) / (hi - lo). Normal: x = (Φ(z(t)) - Φ(z(lo))) / (Φ(z(hi)) - Φ(z(lo))).
// Both ends are exact: Cdf(lo) = 0, Cdf(hi) = 1.
#pragma once

#include <cstdint>
#include <optional>

namespace shirabe::suggestion {

class IntervalDistribution {
 public:
  struct Interval {
    double lo = 0;
    double hi = 1;  // > lo; hi - lo must not overflow
  };

  static IntervalDistribution Uniform(Interval interval);
  // The ends must lie within 30 deviations of the mean.
  static IntervalDistribution Normal(Interval interval, double mean, double deviation);

  double Cdf(double t) const;
  double Quantile(double x) const;

 private:
  explicit IntervalDistribution(Interval interval) : interval_(interval) {}

  Interval interval_;
  bool normal_ = false;
  double mean_ = 0, deviation_ = 1;
  double below_ = 0;  // Φ(z(lo))
  double mass_ = 1;   // Φ(z(hi)) - Φ(z(lo))
};

// How n levels share the unit interval: equally, or each as much as the probability of the values
// nearest to it. It turns a coordinate into a level and a level into the middle of its share, which
// are exact inverses, without keeping n of anything: there may be 2^53 + 1 levels. Used by the axes
// of integers, steps and lists. Immutable, any thread.
class LevelPartition {
 public:
  // Where the levels lie on the line that the probability is spread over. Level k reaches from
  // half a step below it to half a step above.
  struct LevelPositions {
    bool log = false;  // at log(min + k·step), else simply at k
    double min = 0;    // > 0; only where `log`
    double step = 1;
  };

  // 1 ≤ count ≤ 2^53 + 1.
  static LevelPartition Equal(uint64_t count);
  // `spread` reaches from half a step below the first level to half a step above the last.
  static LevelPartition ByMass(uint64_t count, const IntervalDistribution& spread,
                               LevelPositions positions);

  uint64_t count() const { return count_; }
  // The level whose share holds `x`; 0 is in the first, 1 in the last.
  uint64_t Level(double x) const;
  // The middle of the share of level `k` < count().
  double Coordinate(uint64_t k) const;
  // Whether even the smallest share is wide enough for doubles to tell the levels apart.
  bool Distinguishable() const;

 private:
  explicit LevelPartition(uint64_t count) : count_(count) {}
  double LowerEdge(uint64_t k) const;
  uint64_t NearLevel(double x) const;

  uint64_t count_;
  std::optional<IntervalDistribution> spread_;  // none: equal shares
  LevelPositions positions_;
};

}  // namespace shirabe::suggestion
