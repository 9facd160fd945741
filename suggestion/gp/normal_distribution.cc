#include "suggestion/gp/normal_distribution.h"

#include <cmath>
#include <numbers>

#include "base/statistics.h"

namespace shirabe::suggestion::gp {
namespace {

constexpr double kLogSqrtTwoPi = 0.91893853320467274178;
constexpr double kDirect = -1;  // above it nothing cancels
constexpr double kSeries = 14;  // below its negative, 16 terms of the series give all digits
constexpr int kTerms = 16;

double LogPdf(double z) { return -0.5 * z * z - kLogSqrtTwoPi; }

// Mills' ratio Φ(-t)/φ(t), 0 ≤ t ≤ kSeries.
double Mills(double t) {
  const double root = std::sqrt(std::numbers::pi / 2);
  return root * std::exp(0.5 * t * t) * std::erfc(t / std::numbers::sqrt2);
}

// t²·(1 - t·R(t)), t ≥ kSeries.
double TailSeries(double t) {
  const double inverse = 1 / (t * t);
  double sum = 0;
  for (int k = kTerms; k >= 1; --k) sum = 1 - (2 * k + 1) * inverse * sum;
  return sum;
}

}  // namespace

// The derivative of h is Φ.
Value LogH(double z) {
  if (z > kDirect) {
    const double cdf = NormalCdf(z);
    const double h = std::exp(LogPdf(z)) + z * cdf;
    return {std::log(h), cdf / h};
  }
  const double t = -z;
  if (t < kSeries) {
    const double ratio = Mills(t);
    const double rest = 1 - t * ratio;
    return {LogPdf(z) + std::log(rest), ratio / rest};
  }
  const double series = TailSeries(t);
  // R(t) = (1 - series/t²) / t.
  return {LogPdf(z) + std::log(series) - 2 * std::log(t), (t - series / t) / series};
}

Value LogCdf(double z) {
  if (z > kDirect) {
    const double cdf = NormalCdf(z);
    return {std::log(cdf), std::exp(LogPdf(z)) / cdf};
  }
  const double t = -z;
  const double ratio = t < kSeries ? Mills(t) : (1 - TailSeries(t) / (t * t)) / t;
  return {LogPdf(z) + std::log(ratio), 1 / ratio};
}

}  // namespace shirabe::suggestion::gp
