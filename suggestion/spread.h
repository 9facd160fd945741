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

namespace shirabe::suggestion {

class Spread {
 public:
  struct Interval {
    double lo = 0;
    double hi = 1;  // > lo; hi - lo must not overflow
  };

  static Spread Uniform(Interval interval);
  // The ends must lie within 30 deviations of the mean.
  static Spread Normal(Interval interval, double mean, double deviation);

  double Cdf(double t) const;
  double Quantile(double x) const;

 private:
  explicit Spread(Interval interval) : interval_(interval) {}

  Interval interval_;
  bool normal_ = false;
  double mean_ = 0, deviation_ = 1;
  double below_ = 0;  // Φ(z(lo))
  double mass_ = 1;   // Φ(z(hi)) - Φ(z(lo))
};

}  // namespace shirabe::suggestion
