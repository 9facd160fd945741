#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shirabe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Normal, QuantileIsTheInverseOfCdf) {
  for (const double p : {1e-300, 1e-12, 0.02, 0.3, 0.5, 0.77, 0.999}) {
    EXPECT_NEAR(NormalCdf(NormalQuantile(p)) / p, 1, 1e-12) << p;
  }
  EXPECT_EQ(NormalQuantile(0.5), 0);
}

TEST(Quantile, IsLinearBetweenOrderStatistics) {
  EXPECT_EQ(Quantile({3}, 0.7), 3);
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_EQ(Quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 0.25), 1.75);  // as numpy.quantile
  EXPECT_EQ(Quantile({1, kInfinity}, 0.1), kInfinity);
  EXPECT_EQ(Quantile({1, 2, kInfinity}, 0.5), 2);
}

TEST(Median, IsTheMeanOfTheTwoMiddleOnes) {
  EXPECT_EQ(Median({5}), 5);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({1, kInfinity}), kInfinity);
  EXPECT_EQ(Median({1e308, 1.5e308}), 1.25e308);  // without overflow
  EXPECT_EQ(UpperMedian<int>({4, 1, 3, 2}), 3);
}

}  // namespace
}  // namespace shirabe
