// Against 100 digits.
#include "suggestion/gp/normal_distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>

namespace shirabe::suggestion::gp {
namespace {

using Real = boost::multiprecision::cpp_bin_float_100;

Real Pi() { return boost::math::constants::pi<Real>(); }
Real PreciseCdf(const Real& z) { return boost::math::erfc(Real(-z / sqrt(Real(2)))) / 2; }
Real PrecisePdf(const Real& z) { return exp(-z * z / 2) / sqrt(2 * Pi()); }
Real PreciseH(const Real& z) { return PrecisePdf(z) + z * PreciseCdf(z); }

std::vector<double> Arguments() {
  std::vector<double> z;
  for (double t = -30; t <= 8; t += 0.173) z.push_back(t);
  for (const double edge : {-1.0, -14.0}) {
    z.push_back(std::nextafter(edge, -100));
    z.push_back(edge);
    z.push_back(std::nextafter(edge, 100));
  }
  return z;
}

TEST(GpNormal, LogHIsRightToElevenDigitsOfH) {
  for (const double z : Arguments()) {
    const Real h = PreciseH(z);
    // A difference of the logarithm is a relative one of h; the logarithm itself may be large.
    const double allowed = 1e-11 + 4e-16 * std::abs(LogH(z).value);
    EXPECT_NEAR(static_cast<double>(Real(LogH(z).value) - log(h)), 0, allowed) << z;
    const auto slope = static_cast<double>(PreciseCdf(z) / h);
    EXPECT_NEAR(LogH(z).slope / slope, 1, 1e-10) << z;
  }
}

TEST(GpNormal, LogCdfIsRightToElevenDigits) {
  for (const double z : Arguments()) {
    const Real cdf = PreciseCdf(z);
    const double allowed = 1e-11 + 4e-16 * std::abs(LogCdf(z).value);
    EXPECT_NEAR(static_cast<double>(Real(LogCdf(z).value) - log(cdf)), 0, allowed) << z;
    EXPECT_NEAR(LogCdf(z).slope / static_cast<double>(PrecisePdf(z) / cdf), 1, 1e-10) << z;
  }
}

TEST(GpNormal, ManyAtOnceAreRightToElevenDigits) {
  std::vector<double> z;
  for (double t = kLeastZ; t <= 40; t += 0.0937) z.push_back(t);
  z.insert(z.end(), {-0.0, 0.0, 1e-9, -1e-9, 1e9, -100, -1e9});
  std::vector<double> h(z.size()), cdf(z.size()), pdf(z.size());
  FillNormals(z.data(), static_cast<int>(z.size()), {h.data(), cdf.data(), pdf.data()});
  for (size_t i = 0; i < z.size(); ++i) {
    if (z[i] < kLeastZ) {
      EXPECT_LT(std::max({h[i], cdf[i], pdf[i]}), 1e-290);
      EXPECT_GE(std::min({h[i], cdf[i], pdf[i]}), 0);
      continue;
    }
    EXPECT_NEAR(h[i] / static_cast<double>(PreciseH(z[i])), 1, 1e-11) << z[i];
    EXPECT_NEAR(cdf[i] / static_cast<double>(PreciseCdf(z[i])), 1, 1e-11) << z[i];
    if (z[i] < -kLeastZ) {
      EXPECT_NEAR(pdf[i] / static_cast<double>(PrecisePdf(z[i])), 1, 1e-11) << z[i];
    }
  }
}

TEST(GpNormal, TheTailsStayFiniteAndRise) {
  double last = -HUGE_VAL;
  for (double z = -1e150; z < -1e-150; z /= 1.5) {
    const Value log = LogH(z);
    ASSERT_TRUE(std::isfinite(log.value) && std::isfinite(log.slope)) << z;
    ASSERT_GE(log.value, last) << z;
    ASSERT_GT(log.slope, 0) << z;
    last = log.value;
  }
  EXPECT_NEAR(LogH(1e9).value, std::log(1e9), 1e-12);
}

}  // namespace
}  // namespace shirabe::suggestion::gp
