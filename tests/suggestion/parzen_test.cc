// The Parzen estimator: a density that sums to one, whatever the axes, and draws what it says.
#include "suggestion/tpe/parzen_estimator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;

std::vector<int> AllAxes(const Space& space) {
  std::vector<int> axes(space.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

ParzenEstimator::Kernels RandomKernels(const Space& space, int n, uint64_t seed) {
  Rng rng(seed);
  ParzenEstimator::Kernels kernels{.centres = ArrayXXd(n, space.size())};
  for (int i = 0; i < n; ++i) {
    const Point point = space.Sample(rng);
    for (int j = 0; j < space.size(); ++j) kernels.centres(i, j) = point[j];
  }
  return kernels;
}

ParzenEstimator Fit(const Space& space, const ParzenEstimator::Kernels& kernels,
                    ParzenEstimator::Options options = {}) {
  return ParzenEstimator(space, AllAxes(space), kernels, options);
}

double Density(const ParzenEstimator& parzen, const Point& point) {
  return std::exp(parzen.LogDensity({point})[0]);
}

// The integral over one continuous axis, by the rule of the middle.
double Integral(const ParzenEstimator& parzen, Point point, int axis) {
  constexpr int kCells = 4000;
  double sum = 0;
  for (int i = 0; i < kCells; ++i) {
    point[axis] = (i + 0.5) / kCells;
    sum += Density(parzen, point);
  }
  return sum / kCells;
}

TEST(ParzenEstimator, AContinuousDensityIntegratesToOne) {
  const Space space = Make({Double("x", {0, 1})});
  for (const auto bandwidth :
       {ParzenEstimator::Bandwidth::kGaps, ParzenEstimator::Bandwidth::kScott}) {
    for (int n : {0, 1, 2, 30}) {
      const ParzenEstimator parzen =
          Fit(space, RandomKernels(space, n, 3), {.bandwidth = bandwidth, .min_bandwidth = 0.01});
      EXPECT_NEAR(Integral(parzen, {0}, 0), 1, 1e-6) << n;
    }
  }
}

TEST(ParzenEstimator, TheMassOfAllPointsOfAFiniteSpaceIsOne) {
  const Space space =
      Make({Int("n", {1, 40}, v1::LOG_UNIFORM), Double("m", {0, 1, 0.1}, v1::NORMAL),
            Discrete("b", {16, 32, 64}), Categorical("c", {"x", "y", "z"})});
  for (const double narrowest : {0.0, 0.05, 1.0}) {
    const ParzenEstimator parzen =
        Fit(space, RandomKernels(space, 25, 5), {.prior_weight = 0.5, .min_bandwidth = narrowest});
    double sum = 0;
    for (uint64_t i = 0; i < space.cardinality().count; ++i) sum += Density(parzen, space.At(i));
    // Shares shaped by a distribution overlap their neighbours' by a little.
    EXPECT_NEAR(sum, 1, 0.02) << narrowest;
  }
}

TEST(ParzenEstimator, AMixedSpaceIntegratesToOne) {
  const Space space = Make({Double("x", {0, 1}), Categorical("c", {"a", "b"}), Int("n", {1, 4})});
  const ParzenEstimator parzen = Fit(space, RandomKernels(space, 12, 9), {.min_bandwidth = 0.02});
  double sum = 0;
  for (int category = 0; category < 2; ++category) {
    for (int level = 0; level < 4; ++level) {
      sum += Integral(parzen, {0, 1.0 * category, space.axis(2).Coordinate(level)}, 0);
    }
  }
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(ParzenEstimator, AProductKernelIsTheProductOfItsAxes) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  ParzenEstimator::Kernels kernels{.centres = ArrayXXd(2, 2)};
  kernels.centres << 0.2, 0.7, 0.6, 0.1;
  const ParzenEstimator parzen = Fit(space, kernels);
  const auto kernel = [](double x, double centre, double sigma) {
    const double z = (x - centre) / sigma, root2 = std::sqrt(2.0);
    const double inside =
        (std::erf((1 - centre) / sigma / root2) + std::erf(centre / sigma / root2)) / 2;
    return std::exp(-z * z / 2) / (std::sqrt(2 * M_PI) * sigma * inside);
  };
  const double h = std::pow(2.0, -1.0 / 6);
  // The variance of two kernels 2t apart is t²; the prior, a third of the weight, has 1/12.
  const double sx = h * std::sqrt(2.0 / 3 * 0.04 + 1.0 / 36);
  const double sy = h * std::sqrt(2.0 / 3 * 0.09 + 1.0 / 36);
  EXPECT_NEAR(parzen.bandwidth(0, 0), sx, 1e-12);
  EXPECT_NEAR(parzen.bandwidth(1, 1), sy, 1e-12);
  const double expected = (1 + kernel(0.3, 0.2, sx) * kernel(0.4, 0.7, sy) +
                           kernel(0.3, 0.6, sx) * kernel(0.4, 0.1, sy)) /
                          3;
  EXPECT_NEAR(Density(parzen, {0.3, 0.4}), expected, 1e-6 * expected);
}

TEST(ParzenEstimator, DrawsWhatItsDensitySays) {
  const Space space = Make({Int("n", {1, 5}), Categorical("c", {"a", "b", "c"})});
  ParzenEstimator::Kernels kernels = RandomKernels(space, 4, 2);
  kernels.weights = ArrayXd(4);
  kernels.weights << 3, 0, 1, 2;
  const ParzenEstimator parzen = Fit(space, kernels, {.prior_weight = 0.3});
  constexpr int kDraws = 200000;
  std::map<uint64_t, int> counts;
  Rng rng(1);
  Point point(2);
  for (int i = 0; i < kDraws; ++i) {
    parzen.Sample(rng, point);
    ++counts[space.IndexOf(point)];
  }
  for (uint64_t i = 0; i < space.cardinality().count; ++i) {
    const double p = Density(parzen, space.At(i));
    EXPECT_NEAR(counts[i] / double{kDraws}, p, 5 * std::sqrt(p / kDraws)) << i;
  }
}

TEST(ParzenEstimator, DrawsOfAContinuousAxisHaveItsMeanAndStayInside) {
  const Space space = Make({Double("x", {0, 1})});
  ParzenEstimator::Kernels kernels{.centres = ArrayXXd(2, 1)};
  kernels.centres << 0.01, 0.05;
  const ParzenEstimator parzen =
      Fit(space, kernels, {.bandwidth = ParzenEstimator::Bandwidth::kGaps});
  double expected = 0, mean = 0;
  constexpr int kCells = 10000, kDraws = 100000;
  for (int i = 0; i < kCells; ++i) {
    const double x = (i + 0.5) / kCells;
    expected += x * Density(parzen, {x}) / kCells;
  }
  Rng rng(1);
  Point point(1);
  for (int i = 0; i < kDraws; ++i) {
    parzen.Sample(rng, point);
    ASSERT_TRUE(point[0] >= 0 && point[0] <= 1);
    mean += point[0] / kDraws;
  }
  EXPECT_NEAR(mean, expected, 0.005);
}

TEST(ParzenEstimator, AxesOfASpaceThatItIsNotOverAreLeftAlone) {
  const Space space =
      Make({Double("x", {0, 1}), Categorical("c", {"a", "b"}), Double("y", {0, 1})});
  ParzenEstimator::Kernels kernels{.centres = ArrayXXd::Constant(3, 1, 0.5)};
  const ParzenEstimator parzen(space, {2}, kernels, {.min_bandwidth = 0.1});
  Rng rng(4);
  Point point = {7, 8, 9};
  parzen.Sample(rng, point);
  EXPECT_EQ(point[0], 7);
  EXPECT_EQ(point[1], 8);
  EXPECT_LE(point[2], 1);
  EXPECT_EQ(Density(parzen, {0, 0, 0.4}), Density(parzen, {1, 1, 0.4}));
}

TEST(ParzenEstimator, GapsAreTheWiderNeighbourInAnyOrder) {
  const Space space = Make({Double("x", {0, 1})});
  ParzenEstimator::Kernels kernels{.centres = ArrayXXd(4, 1)};
  kernels.centres << 0.9, 0.1, 0.5, 0.2;
  const ParzenEstimator parzen =
      Fit(space, kernels, {.bandwidth = ParzenEstimator::Bandwidth::kGaps});
  const double expected[] = {0.4, 0.1, 0.4, 0.3};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(parzen.bandwidth(i, 0), expected[i], 1e-12);
}

// f as it is written in parzen_estimator.h, of one continuous axis.
double Formula(const ParzenEstimator& parzen, const ParzenEstimator::Kernels& kernels, double prior,
               double x) {
  const auto phi = [](double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; };
  const double sum = kernels.weights.sum();
  const double own = prior * sum / static_cast<double>(kernels.weights.size());
  double density = own;
  for (Eigen::Index i = 0; i < kernels.weights.size(); ++i) {
    const double centre = kernels.centres(i, 0), sigma = parzen.bandwidth(i, 0);
    const double z = (x - centre) / sigma;
    const double inside = phi((1 - centre) / sigma) - phi(-centre / sigma);
    density += kernels.weights[i] * std::exp(-z * z / 2) /
               (sigma * inside * std::sqrt(2 * std::numbers::pi));
  }
  return density / (sum + own);
}

TEST(ParzenEstimator, MissesNothingOfKernelsThatAreFarAway) {
  const Space space = Make({Double("x", {0, 1})});
  Rng rng(11);
  for (const int n : {5, 60, 800}) {
    ParzenEstimator::Kernels kernels{.centres = ArrayXXd(n, 1), .weights = ArrayXd(n)};
    for (int i = 0; i < n; ++i) {
      const double u = rng.Uniform();
      kernels.centres(i, 0) = i % 2 == 0 ? u : 0.3 + 0.01 * u;
      kernels.weights[i] = 0.1 + rng.Uniform();
    }
    for (const double prior : {1.0, 1e-3}) {
      const ParzenEstimator parzen = Fit(space, kernels,
                                         {.bandwidth = ParzenEstimator::Bandwidth::kGaps,
                                          .prior_weight = prior,
                                          .min_bandwidth = 0.01});
      for (int k = 0; k <= 200; ++k) {
        const double x = k / 200.0, wanted = Formula(parzen, kernels, prior, x);
        EXPECT_NEAR(parzen.LogDensity({{x}})[0], std::log(wanted), 2e-6) << n << " " << x;
      }
    }
  }
}

TEST(ParzenEstimator, KernelsOfOneLevelShareItsGap) {
  const Space space = Make({Int("n", {1, 100})});
  const auto at = [&](int value) { return space.axis(0).Coordinate(value - 1); };
  ParzenEstimator::Kernels kernels{.centres = ArrayXXd(5, 1)};
  kernels.centres << at(10), at(30), at(10), at(10), at(30);
  const ParzenEstimator parzen =
      Fit(space, kernels, {.bandwidth = ParzenEstimator::Bandwidth::kGaps});
  EXPECT_NEAR(parzen.bandwidth(0, 0), 0.2 / 3, 1e-9);
  EXPECT_NEAR(parzen.bandwidth(4, 0), 0.2 / 2, 1e-9);
}

TEST(ParzenEstimator, IsFiniteWhereKernelsAreAsNarrowAsCanBe) {
  const Space space = Make(
      {Double("x", {0, 1}), Int("n", {0, 0x1p53}), Int("m", {1, 3}), Categorical("c", {"a", "b"})});
  ParzenEstimator::Kernels kernels{.centres = ArrayXXd::Zero(50, 4)};  // all the same
  for (const auto bandwidth :
       {ParzenEstimator::Bandwidth::kGaps, ParzenEstimator::Bandwidth::kScott}) {
    const ParzenEstimator parzen = Fit(space, kernels, {.bandwidth = bandwidth});
    Rng rng(6);
    std::vector<Point> points = {{0, 0, 0, 0}, {1, 1, 1, 1}, {1, 0, 0, 0}, {0, 1, 0, 0}};
    for (int i = 0; i < 20; ++i) points.push_back(space.Sample(rng));
    EXPECT_TRUE(parzen.LogDensity(points).isFinite().all());
    Point point(4);
    for (int i = 0; i < 100; ++i) {
      parzen.Sample(rng, point);
      EXPECT_TRUE(point[0] >= 0 && point[0] <= 1);
    }
  }
}

TEST(ParzenEstimator, WithoutKernelsOrWeightItIsThePrior) {
  const Space space = Make({Double("x", {0, 1}), Int("n", {1, 10}), Categorical("c", {"a", "b"})});
  ParzenEstimator::Kernels none{.centres = ArrayXXd(0, 3)};
  ParzenEstimator::Kernels weightless = RandomKernels(space, 3, 8);
  weightless.weights = ArrayXd::Zero(3);
  for (const ParzenEstimator::Kernels& kernels : {none, weightless}) {
    const ParzenEstimator parzen = Fit(space, kernels);
    EXPECT_NEAR(Density(parzen, {0.3, space.axis(1).Coordinate(4), 1}), 1.0 / 20, 1e-12);
    Rng rng(1);
    Point point(3);
    parzen.Sample(rng, point);
    EXPECT_EQ(space.Canonical({0, point[1], point[2]}), (Point{0, point[1], point[2]}));
  }
}

}  // namespace
}  // namespace shirabe::suggestion
