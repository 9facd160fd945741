#include "suggestion/gp/normal_distribution.h"

#include <cmath>
#include <iterator>
#include <numbers>

#include "base/statistics.h"
#include "suggestion/gp/decay.h"

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

namespace {

// (t + kPole)·R(t), 0 ≤ t ≤ kPoleEnd, as a polynomial of v, which is linear in 1 / (t + kPole) and
// runs from -1 to 1: what interpolates it in 21 of Chebyshev's points, with 50 digits. Relative
// error 3e-16.
constexpr double kPole = 5, kPoleEnd = 38;
constexpr double kMills[] = {
    2.1401207940171703,     -1.7597034788818606,    1.2121548379946896,     -0.6925091085994522,
    0.32039986862022907,    -0.1140185910062112,    0.027288298016222585,   -0.0020870036892399225,
    -0.0012960148113058823, 0.00047115948164879747, 1.2301440147952693e-05, -4.335633558349398e-05,
    4.340491372147137e-06,  3.844621267254931e-06,  -6.91854672177534e-07,  -3.8212532509523814e-07,
    8.054496805539543e-08,  4.0281357085225696e-08, -7.696602124823252e-09, -3.0889127100391717e-09,
    4.729698308896745e-10,
};
constexpr int kDegree = static_cast<int>(std::size(kMills)) - 1;

double FastMills(double t) {
  constexpr double kLast = 1 / (kPoleEnd + kPole), kWidth = 1 / kPole - kLast;
  const double inverse = 1 / (t + kPole);
  const double v = 1 - 2 / kWidth * (inverse - kLast), v2 = v * v;
  // Even and odd powers by themselves: half as long a chain.
  double even = kMills[kDegree], odd = kMills[kDegree - 1];
  for (int k = kDegree - 2; k >= 2; k -= 2) {
    even = even * v2 + kMills[k];
    odd = odd * v2 + kMills[k - 1];
  }
  return ((even * v2 + kMills[0]) + odd * v) * inverse;
}

}  // namespace

// Without a comparison, so that compilers do several at once.
void FillNormals(const double* z, int count, const Normals& normals) {
  const double scale = std::exp(-kLogSqrtTwoPi);
  double *const h = normals.h, *const cdf = normals.cdf, *const pdf = normals.pdf;
  for (int i = 0; i < count; ++i) {
    const double amount = std::abs(z[i]), above = 0.5 + std::copysign(0.5, z[i]);
    const double t = 0.5 * (amount - kLeastZ - std::abs(amount + kLeastZ));  // the lesser one
    const double density = scale * Decay(0.5 * t * t);
    const double beyond = density * FastMills(t);  // Φ(-t)
    pdf[i] = density;
    cdf[i] = above + (1 - 2 * above) * beyond;
    h[i] = 0.5 * (z[i] + amount) + (density - t * beyond);  // h(-t), and z where it is above 0
  }
}

}  // namespace shirabe::suggestion::gp
