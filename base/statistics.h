// The standard normal distribution, and order statistics. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace shirabe {

// Φ(z), by erfc, which keeps its relative precision in the lower tail, where 1 + erf would cancel.
double NormalCdf(double z);

// The z with Φ(z) = p; 0 < p < 1.
double NormalQuantile(double p);

// Of at least one value: linear between order statistics (Hyndman and Fan's type 7, numpy's
// default), 0 ≤ q ≤ 1; infinite where the upper one of the two is.
double Quantile(std::vector<double> values, double q);

// Of at least one value: the middle one, or the mean of the two middle ones.
double Median(std::vector<double> values);

// Of at least one value: the middle one, or the upper of the two.
template <class Number>
Number UpperMedian(std::vector<Number> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace shirabe
