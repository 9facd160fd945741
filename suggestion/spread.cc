#include "suggestion/spread.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

namespace shirabe::suggestion {
namespace {

// No promotion to long double, which is another type on another processor; no exceptions.
using Policy = boost::math::policies::policy<
    boost::math::policies::promote_double<false>,
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;

// By erfc, which keeps its relative precision in the lower tail, where 1 + erf would cancel.
double Phi(double z) { return boost::math::erfc(-z / std::numbers::sqrt2, Policy()) / 2; }

double PhiInverse(double p) {
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * p, Policy());
}

}  // namespace

Spread Spread::Uniform(Interval interval) { return Spread(interval); }

Spread Spread::Normal(Interval interval, double mean, double deviation) {
  Spread spread(interval);
  spread.normal_ = true;
  spread.mean_ = mean;
  spread.deviation_ = deviation;
  spread.below_ = Phi((interval.lo - mean) / deviation);
  spread.mass_ = Phi((interval.hi - mean) / deviation) - spread.below_;
  return spread;
}

double Spread::Cdf(double t) const {
  if (!normal_) return (t - interval_.lo) / (interval_.hi - interval_.lo);
  return (Phi((t - mean_) / deviation_) - below_) / mass_;
}

double Spread::Quantile(double x) const {
  if (!(x > 0)) return interval_.lo;
  if (x >= 1) return interval_.hi;
  const double t = normal_ ? mean_ + deviation_ * PhiInverse(below_ + x * mass_)
                           : interval_.lo + x * (interval_.hi - interval_.lo);
  return std::clamp(t, interval_.lo, interval_.hi);
}

}  // namespace shirabe::suggestion
