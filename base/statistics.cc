#include "base/statistics.h"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>
#include <numeric>

namespace shirabe {

double NormalCdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double NormalQuantile(double p) {
  // No promotion to long double, which is another type on another processor; no exceptions.
  using boost::math::policies::ignore_error;
  using Policy =
      boost::math::policies::policy<boost::math::policies::promote_double<false>,
                                    boost::math::policies::domain_error<ignore_error>,
                                    boost::math::policies::overflow_error<ignore_error>,
                                    boost::math::policies::evaluation_error<ignore_error>>;
  return -std::numbers::sqrt2 * boost::math::erfc_inv(2 * p, Policy());
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const double part = at - static_cast<double>(below);
  if (part == 0) return values[below];
  if (std::isinf(values[below + 1])) return values[below + 1];
  return std::lerp(values[below], values[below + 1], part);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return std::midpoint(values[middle - 1], values[middle]);
}

}  // namespace shirabe
