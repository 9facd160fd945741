#include "suggestion/sobol_sequence.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

#include "base/rng.h"

namespace shirabe::suggestion {
namespace {

std::vector<std::vector<double>> First(int count, int dimensions, uint64_t seed) {
  const SobolSequence sequence(dimensions);
  std::vector<std::vector<double>> points;
  for (int i = 0; i < count; ++i) points.push_back(sequence.At(i, seed));
  return points;
}

// A (0, m, 1)-net: of 2^m points exactly one lies in each of the 2^m equal intervals.
TEST(SobolSequence, EveryProjectionOnOneAxisIsStratifiedExactly) {
  constexpr int kDimensions = 60;
  for (uint64_t seed : {1, 2, 3}) {
    for (int count = 1; count <= 1024; count *= 2) {
      const auto points = First(count, kDimensions, seed);
      for (int d = 0; d < kDimensions; ++d) {
        std::set<int> strata;
        for (const auto& point : points) strata.insert(static_cast<int>(point[d] * count));
        ASSERT_EQ(static_cast<int>(strata.size()), count) << "dimension " << d << " seed " << seed;
      }
    }
  }
}

// The first two dimensions are a (0, 2)-sequence: every elementary rectangle of area 2^-m holds
// exactly one of 2^m points, whatever its shape, also after scrambling.
TEST(SobolSequence, TheFirstTwoDimensionsFillEveryElementaryRectangle) {
  const int m = 8, count = 1 << m;
  const auto points = First(count, 2, 7);
  for (int a = 0; a <= m; ++a) {
    std::set<std::pair<int, int>> cells;
    for (const auto& point : points) {
      cells.emplace(static_cast<int>(point[0] * (1 << a)),
                    static_cast<int>(point[1] * (1 << (m - a))));
    }
    EXPECT_EQ(static_cast<int>(cells.size()), count) << "columns " << (1 << a);
  }
}

TEST(SobolSequence, ScramblingDependsOnTheSeedAndTheDimension) {
  const SobolSequence sequence(3);
  EXPECT_EQ(sequence.At(5, 1), sequence.At(5, 1));
  EXPECT_NE(sequence.At(5, 1), sequence.At(5, 2));
  const auto origin = sequence.At(0, 1);
  EXPECT_NE(origin[0], origin[1]);
  EXPECT_NE(origin[0], 0);
}

// Over seeds each point alone is uniform: what makes a scrambled sequence unbiased.
TEST(SobolSequence, OverSeedsEveryPointIsUniform) {
  const SobolSequence sequence(4);
  for (uint64_t index : {0, 1, 77}) {
    std::vector<int> bins(10);
    for (uint64_t seed = 0; seed < 5000; ++seed) {
      for (double x : sequence.At(index, Mix(seed, 9))) ++bins[static_cast<int>(x * 10)];
    }
    double chi2 = 0;
    for (int n : bins) chi2 += (n - 2000.0) * (n - 2000.0) / 2000;
    EXPECT_LT(chi2, 33.7) << "index " << index;  // 9 degrees of freedom, p = 1e-4
  }
}

TEST(SobolSequence, LowDigitsAreRandomNotZero) {
  const SobolSequence sequence(2);
  int ones = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto bits = static_cast<uint64_t>(sequence.At(i, 3)[1] * 0x1p53);
    ones += std::popcount(bits & 0x1FFFFF);
  }
  EXPECT_NEAR(ones, 4000 * 21 / 2, 700);  // five deviations
}

// Root mean square error of the integral of a smooth function, over seeds.
double IntegrationError(bool quasi, int count, int dimensions) {
  const SobolSequence sequence(dimensions);
  double squares = 0;
  constexpr int kSeeds = 20;
  for (int seed = 0; seed < kSeeds; ++seed) {
    Rng rng(seed);
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      std::vector<double> x = sequence.At(i, Mix(seed, 1));
      if (!quasi) {
        for (double& u : x) u = rng.Uniform();
      }
      double f = 1;  // integral 1
      for (double u : x) f *= 1 + (u - 0.5);
      sum += f;
    }
    squares += std::pow(sum / count - 1, 2);
  }
  return std::sqrt(squares / kSeeds);
}

TEST(SobolSequence, IntegratesFarBetterThanRandomPoints) {
  EXPECT_LT(IntegrationError(true, 256, 5) * 10, IntegrationError(false, 256, 5));
  EXPECT_LT(IntegrationError(true, 1024, 10) * 5, IntegrationError(false, 1024, 10));
}

TEST(SobolSequence, AllDimensionsOfTheTable) {
  const SobolSequence sequence(SobolSequence::kMaxDimensions);
  std::set<int> strata;
  for (int i = 0; i < 64; ++i) {
    const auto point = sequence.At(i, 1);
    ASSERT_EQ(static_cast<int>(point.size()), SobolSequence::kMaxDimensions);
    strata.insert(static_cast<int>(point.back() * 64));
    for (double x : point) ASSERT_TRUE(x >= 0 && x < 1);
  }
  EXPECT_EQ(strata.size(), 64u);
  EXPECT_TRUE(SobolSequence(0).At(3, 1).empty());
}

TEST(SobolSequence, GoesOnPastTwoToThe32) {
  const SobolSequence sequence(2);
  EXPECT_NE(sequence.At(5, 1), sequence.At(5 + (uint64_t{1} << 32), 1));
}

}  // namespace
}  // namespace shirabe::suggestion
