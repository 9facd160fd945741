// The mathematics of CMA-ES, without trials: suggestion/cmaes/cma*.h.
#include "suggestion/cmaes/cma.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <limits>

#include "base/rng.h"
#include "suggestion/cmaes/cma_covariance.h"
#include "suggestion/cmaes/cma_search.h"

namespace shirabe::suggestion {
namespace {

using Tier = CmaMember::Tier;

Eigen::VectorXd Ranks(int n) { return Eigen::VectorXd::LinSpaced(n, 1, n); }

TEST(CmaWeights, OfThePositivesAddUpToOneAndTheOthersAreNegative) {
  const CmaWeights weights = MakeCmaWeights(Ranks(10), 10, false);
  ASSERT_TRUE(weights.informative);
  EXPECT_NEAR(weights.w.cwiseMax(0).sum(), 1, 1e-12);
  for (int i = 1; i < 10; ++i) EXPECT_LT(weights.w[i], weights.w[i - 1]);
  EXPECT_GT(weights.w[4], 0);
  EXPECT_LT(weights.w[5], 0);
  // Worked out by hand from equations 49–58 of the tutorial for d = λ = 10.
  EXPECT_NEAR(weights.mu_eff, 3.1673, 1e-3);
  EXPECT_NEAR(weights.c_sigma, 5.1673 / 18.1673, 1e-4);
  EXPECT_NEAR(weights.c_1, 2 / (11.3 * 11.3 + 3.1673), 1e-6);
}

TEST(CmaWeights, OfEqualRanksAreEqualAndOfAllEqualSayNothing) {
  const CmaWeights weights = MakeCmaWeights(AverageRanks({5, 1, 5, 2, 5, 3}), 3, false);
  EXPECT_EQ(weights.w[0], weights.w[2]);
  EXPECT_EQ(weights.w[0], weights.w[4]);
  EXPECT_FALSE(MakeCmaWeights(AverageRanks({7, 7, 7, 7}), 3, false).informative);
  EXPECT_FALSE(MakeCmaWeights(Ranks(1), 3, false).informative);
}

// Σ of all factors of C is at most 1 plus what the negative weights may take, and the update stays
// positive definite even if the whole negative weight falls on one direction.
TEST(CmaWeights, KeepTheCovariancePositive) {
  for (bool separable : {false, true}) {
    for (int d : {1, 2, 5, 30, 300}) {
      for (int n : {2, 3, 8, 50, 1000}) {
        const CmaWeights weights = MakeCmaWeights(Ranks(n), d, separable);
        EXPECT_LE(weights.c_1 + weights.c_mu, 1 + 1e-12) << d << " " << n;
        const double negative = -weights.w.cwiseMin(0).sum();
        const double kept = 1 - weights.c_1 - weights.c_mu * weights.w.sum();
        EXPECT_GE(kept, d * weights.c_mu * negative - 1e-9) << d << " " << n;
      }
    }
  }
}

TEST(CmaCovariance, ItsRootsAreInverse) {
  Rng rng(1);
  Eigen::MatrixXd a(4, 4);
  for (double& x : a.reshaped()) x = rng.Normal();
  CmaCovariance covariance(4, false);
  ASSERT_TRUE(covariance.Set(a * a.transpose() + Eigen::MatrixXd::Identity(4, 4)));
  const Eigen::VectorXd z = a.col(0);
  EXPECT_TRUE(covariance.InverseRoot(covariance.Root(z)).isApprox(z, 1e-9));
  const Eigen::MatrixXd& c = covariance.values();
  EXPECT_TRUE(covariance.Whitened(c).isApprox(Eigen::MatrixXd::Identity(4, 4), 1e-9));
  EXPECT_NEAR(covariance.LogDeterminant(), std::log(c.determinant()), 1e-9);
}

TEST(CmaCovariance, WhatIsNotPositiveDefiniteIsRefused) {
  for (bool separable : {false, true}) {
    CmaCovariance covariance(2, separable);
    const Eigen::MatrixXd before = covariance.values();
    EXPECT_FALSE(covariance.Set(-before));
    EXPECT_FALSE(covariance.Set(before * std::numeric_limits<double>::quiet_NaN()));
    Eigen::MatrixXd flat = before;
    flat(1, flat.cols() - 1) = 1e-15;
    EXPECT_FALSE(covariance.Set(flat));
    EXPECT_EQ(covariance.values(), before);
  }
}

// Minimises `loss` without bounds from (0.2, …), asking for `generations` times 12 points; gives
// the best loss.
template <class Loss>
double Minimise(Cma cma, int generations, Loss loss) {
  Rng rng(3);
  double best = std::numeric_limits<double>::infinity();
  for (int t = 0; t < generations; ++t) {
    Eigen::MatrixXd z(cma.dimensions(), 12);
    std::vector<double> losses;
    for (double& value : z.reshaped()) value = rng.Normal();
    for (int i = 0; i < 12; ++i) losses.push_back(loss(cma.At(z.col(i))));
    for (double value : losses) best = std::min(best, value);
    cma.Tell(z, AverageRanks(losses));
  }
  return best;
}

CmaStart At(int dimensions, double mean) {
  return {.mean = Eigen::VectorXd::Constant(dimensions, mean), .sigma = 0.2};
}

double Sphere(const Eigen::VectorXd& x) { return (x.array() - 0.7).square().sum(); }

double Ellipsoid(const Eigen::VectorXd& x) {
  double sum = 0;
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    sum += std::pow(1e6, static_cast<double>(i) / (x.size() - 1.0)) * std::pow(x[i] - 0.7, 2);
  }
  return sum;
}

double Rosenbrock(const Eigen::VectorXd& x) {
  double sum = 0;
  for (Eigen::Index i = 0; i + 1 < x.size(); ++i) {
    sum += 100 * std::pow(x[i] * x[i] - x[i + 1], 2) + std::pow(x[i] - 1, 2);
  }
  return sum;
}

TEST(Cma, FindsTheMinimaOfTheClassicFunctions) {
  EXPECT_LT(Minimise(Cma(At(5, 0.2), {}), 120, Sphere), 1e-10);
  EXPECT_LT(Minimise(Cma(At(5, 0.2), {}), 300, Ellipsoid), 1e-10);
  EXPECT_LT(Minimise(Cma(At(5, 0.2), {}), 400, Rosenbrock), 1e-8);
}

// Scales that differ by 1000 in many dimensions: the diagonal is learnt d/3 times as fast.
TEST(Cma, TheSeparableVariantLearnsScalesSooner) {
  const double dense = Minimise(Cma(At(40, 0.2), {}), 500, Ellipsoid);
  const double diagonal = Minimise(Cma(At(40, 0.2), {.separable = true}), 500, Ellipsoid);
  EXPECT_LT(diagonal, dense / 100);
}

TEST(Cma, AdaptedRatesAverageOverNoise) {
  const auto final_distance = [](bool adapt) {
    Cma cma(At(5, 0.2), {.adapt_rates = adapt});
    Rng noise(8);
    Minimise(cma, 0, Sphere);
    Rng rng(4);
    double sum = 0;
    for (int t = 0; t < 600; ++t) {
      Eigen::MatrixXd z(5, 8);
      std::vector<double> losses;
      for (double& value : z.reshaped()) value = rng.Normal();
      for (int i = 0; i < 8; ++i)
        losses.push_back(Sphere(cma.At(z.col(i))) + 0.05 * noise.Normal());
      cma.Tell(z, AverageRanks(losses));
      if (t >= 400) sum += Sphere(cma.mean());
    }
    return sum / 200;
  };
  EXPECT_LT(final_distance(true), final_distance(false) / 2);
}

TEST(Cma, OnlyTheOrderOfLossesMatters) {
  const auto raw = Minimise(Cma(At(4, 0.2), {}), 50, Sphere);
  const auto cubed = Minimise(Cma(At(4, 0.2), {}), 50,
                              [](const Eigen::VectorXd& x) { return std::pow(Sphere(x), 3); });
  EXPECT_NEAR(std::cbrt(cubed), raw, 1e-9 * raw);
}

TEST(Cma, APlateauWidensItUpToTheCube) {
  Cma cma(At(3, 0.5), {});
  const Eigen::MatrixXd z = Eigen::MatrixXd::Identity(3, 3);
  const double before = cma.sigma();
  cma.Tell(z, AverageRanks({1, 1, 1}));
  EXPECT_GT(cma.sigma(), before);
  for (int i = 0; i < 100; ++i) cma.Tell(z, AverageRanks({1, 1, 1}));
  EXPECT_LE(cma.Deviations().maxCoeff(), 1 + 1e-12);
  EXPECT_EQ(cma.mean(), Eigen::VectorXd::Constant(3, 0.5));
}

TEST(Cma, AFarPointCountsNoMoreThanTheFarthestItCouldDraw) {
  const Cma cma(At(4, 0.5), {});
  const Eigen::VectorXd near = Eigen::VectorXd::Constant(4, 0.6);
  EXPECT_TRUE(cma.At(cma.Injected(near)).isApprox(near, 1e-12));
  const Eigen::VectorXd far = Eigen::VectorXd::Constant(4, 1e9);
  EXPECT_NEAR(cma.Injected(far).norm(), 2 + 8.0 / 6, 1e-9);
}

TEST(OrthogonalSampler, TurnsDrawsAtRightAnglesAndKeepsTheirLengths) {
  Rng rng(4);
  OrthogonalSampler sampler;
  std::vector<Eigen::VectorXd> block;
  for (int i = 0; i < 7; ++i) {
    Eigen::VectorXd z(5);
    for (double& value : z) value = rng.Normal();
    const Eigen::VectorXd turned = sampler.Turned(z);
    EXPECT_NEAR(turned.norm(), z.norm(), 1e-12);
    if (i == 5) block.clear();  // a new block: d directions are all there are
    for (const Eigen::VectorXd& other : block) EXPECT_NEAR(turned.dot(other), 0, 1e-9);
    block.push_back(turned);
    sampler.Add(turned);
    sampler.Add(2 * turned);  // no new direction
    sampler.Add(Eigen::VectorXd::Zero(5));
  }
}

TEST(CmaMargin, AnInnerLevelKeepsAWayOutOnBothSides) {
  const double alpha = 0.02;
  const CmaEdges edges{.below = 0.3, .above = 0.5};
  const CmaMarginal stuck{.mean = 0.41, .deviation = 1e-6};
  const CmaMarginal free = WithMargin(stuck, edges, alpha);
  const auto beyond = [&free](double t) { return std::erfc(t / free.deviation / M_SQRT2) / 2; };
  EXPECT_NEAR(beyond(0.5 - free.mean), alpha / 2, 1e-9);
  EXPECT_NEAR(beyond(free.mean - 0.3), alpha / 2, 1e-9);
  const CmaMarginal wide{.mean = 0.4, .deviation = 0.2};
  EXPECT_EQ(WithMargin(wide, edges, alpha).deviation, 0.2);
  EXPECT_EQ(WithMargin(wide, edges, alpha).mean, 0.4);
}

TEST(CmaMargin, ALevelAtAnEndKeepsAWayBack) {
  const CmaMarginal stuck{.mean = 0.99, .deviation = 0.01};
  const CmaMarginal last = WithMargin(stuck, {.below = 0.8}, 0.05);
  EXPECT_NEAR(std::erfc((last.mean - 0.8) / 0.01 / M_SQRT2) / 2, 0.05, 1e-9);
  EXPECT_EQ(last.deviation, 0.01);
  const CmaMarginal first = WithMargin({.mean = -3, .deviation = 0.01}, {.above = 0.2}, 0.05);
  EXPECT_NEAR(std::erfc((0.2 - first.mean) / 0.01 / M_SQRT2) / 2, 0.05, 1e-9);
  EXPECT_EQ(WithMargin(stuck, {}, 0.05).mean, 0.99);  // one level: nowhere to go
}

TEST(CmaCategories, TheBetterCategoryBecomesLikelyButNeverCertain) {
  CmaCategories categories({3, 2, 1});
  Rng rng(5);
  for (int t = 0; t < 100; ++t) {
    Eigen::MatrixXi members(3, 10);
    std::vector<double> losses;
    for (int i = 0; i < 10; ++i) {
      for (int k = 0; k < 3; ++k) members(k, i) = categories.Draw(k, rng.Uniform());
      losses.push_back((members(0, i) == 2 ? 0 : 1) + (members(1, i) == 0 ? 0 : 1));
    }
    const CmaWeights weights = MakeCmaWeights(AverageRanks(losses), 5, false);
    if (weights.informative) categories.Tell(members, weights.w);
    for (int k = 0; k < 3; ++k) {
      double sum = 0;
      for (int c = 0; c < 3 - k; ++c) sum += categories.probability(k, c);
      EXPECT_NEAR(sum, 1, 1e-9);
    }
  }
  EXPECT_GT(categories.probability(0, 2), 0.8);
  EXPECT_GT(categories.probability(1, 0), 0.8);
  EXPECT_GT(categories.probability(0, 0), 0.01);
  EXPECT_NEAR(categories.probability(2, 0), 1, 1e-12);
}

TEST(CmaStart, TheBestTenthSaysWhereAndHowWide) {
  CmaSource source{.points = Eigen::MatrixXd(2, 100)};
  Rng rng(6);
  for (int i = 0; i < 100; ++i) {
    source.points.col(i) << rng.Uniform(), rng.Uniform();
    source.losses.push_back(std::pow(source.points(0, i) - 0.2, 2));  // the other is free
  }
  const CmaStart start = WarmStart(source, 0.3);
  EXPECT_NEAR(start.mean[0], 0.2, 0.05);
  EXPECT_NEAR(start.covariance.determinant(), 1, 1e-9);
  const Eigen::MatrixXd covariance = start.sigma * start.sigma * start.covariance;
  EXPECT_NEAR(std::sqrt(covariance(0, 0)), 0.1, 0.02);
  EXPECT_GT(std::sqrt(covariance(1, 1)), 0.2);
}

TEST(CmaStart, AFewTrialsSayOnlyWhere) {
  const CmaSource source{.points = Eigen::MatrixXd::Identity(3, 3), .losses = {2, 1, 3}};
  EXPECT_EQ(WarmStart(source, 0.3).mean, source.points.col(1));
  EXPECT_EQ(WarmStart(source, 0.3).sigma, 0.3);
  EXPECT_EQ(WarmStart({.points = Eigen::MatrixXd(3, 0)}, 0.3).mean,
            Eigen::VectorXd::Constant(3, 0.5));
}

TEST(CmaRestarts, IpopDoubles) {
  CmaRestarts restarts(CmaRestarts::Strategy::kIpop, {.population = 8, .sigma = 0.2});
  Rng rng(1);
  EXPECT_EQ(restarts.Next(100, rng).population, 16);
  EXPECT_EQ(restarts.Next(100, rng).population, 32);
}

TEST(CmaRestarts, BipopGivesBothRegimesTheSame) {
  CmaRestarts restarts(CmaRestarts::Strategy::kBipop, {.population = 8, .sigma = 0.2});
  Rng rng(1);
  CmaRunPlan plan = restarts.Next(100, rng);
  EXPECT_EQ(plan.population, 16);
  int64_t large = 100, small = 0, largest = 16;
  for (int i = 0; i < 40; ++i) {
    const bool is_small = plan.limit > 0;
    const int64_t trials = is_small ? 50 : 200;
    (is_small ? small : large) += trials;
    plan = restarts.Next(trials, rng);
    EXPECT_EQ(plan.limit > 0, small < large);
    if (plan.limit > 0) {
      EXPECT_GE(plan.population, 8);
      EXPECT_LE(plan.population, largest);
      EXPECT_LE(plan.sigma, 0.2);
      EXPECT_GE(plan.sigma, 0.002);
    } else {
      EXPECT_EQ(plan.population, largest *= 2);
    }
  }
}

TEST(CmaProgress, EndsWhereLossesAreFlatInTheirOwnUnits) {
  for (double unit : {1e-9, 1.0, 1e9}) {
    CmaProgress progress(2, 6);
    progress.Observe({0, unit, 2 * unit});
    for (int t = 0; t < 19; ++t) progress.Observe({1e-4 * unit, 2e-4 * unit});
    EXPECT_FALSE(progress.Ended());
    for (int t = 0; t < 20; ++t) progress.Observe({1e-13 * unit, 2e-13 * unit});
    EXPECT_TRUE(progress.Ended());
  }
}

TEST(CmaProgress, EndsWhereNothingImproves) {
  CmaProgress progress(2, 6);
  Rng rng(1);
  int t = 0;
  while (!progress.Ended() && t < 1000) progress.Observe({rng.Uniform(), rng.Uniform()}), ++t;
  EXPECT_GE(t, 130);
  EXPECT_LT(t, 1000);
  CmaProgress falls(2, 6);
  for (int i = 0; i < 1000; ++i) falls.Observe({-1.0 * i, 1.0});
  EXPECT_FALSE(falls.Ended());
}

TEST(CmaProgress, HugeLossesDoNotOverflow) {
  CmaProgress progress(2, 6);
  for (int t = 0; t < 50; ++t) progress.Observe({-1e308, t % 2 == 0 ? 1e308 : 1e307, 0});
  EXPECT_FALSE(progress.Ended());
  progress.Observe({});
}

TEST(CmaRecord, GivesBackToTheBitWhatItWasGiven) {
  CmaSearch search({.continuous = {true, false}, .categories = {3}},
                   {.sigma = 0.2, .population = 6, .adapt_rates = true});
  Rng rng(2);
  std::vector<CmaMember> members;
  for (int i = 0; i < 6; ++i) members.push_back({search.Draw(rng, {}), Tier::kCompleted, 1.0 * i});
  search.Tell(members, 6, [](int, double) { return CmaEdges{.below = 0.4}; });
  CmaRecord writer;
  search.Fields(writer);
  CmaSearch copy({.continuous = {true, false}, .categories = {3}},
                 {.sigma = 0.2, .population = 6, .adapt_rates = true});
  CmaRecord reader(writer.text());
  copy.Fields(reader);
  ASSERT_TRUE(reader.ok() && reader.AtEnd());
  Rng one(9), other(9);
  EXPECT_EQ(search.Draw(one, {}).x, copy.Draw(other, {}).x);
  for (size_t length = 0; length < writer.text().size(); length += 7) {
    CmaRecord torn(writer.text().substr(0, length));
    copy.Fields(torn);
    EXPECT_FALSE(torn.ok());
  }
}

// What lies outside is worse than what is tried on the bound itself, so that the mean does not
// wander off where nothing pulls it back.
TEST(CmaSearch, ABoundIsReachedAndNotLeftFarBehind) {
  CmaSearch search({.continuous = {true, true, true}}, {.sigma = 0.2, .population = 10});
  Rng rng(2);
  double best = 10;
  for (int t = 0; t < 200; ++t) {
    std::vector<CmaMember> members;
    for (int i = 0; i < 10; ++i) {
      CmaDraw draw = search.Draw(rng, {});
      const Eigen::VectorXd u = draw.x.cwiseMax(0).cwiseMin(1);
      const double loss = 1 - u[0] + u[1] + std::pow(u[2] - 0.5, 2);
      best = std::min(best, loss);
      members.push_back({std::move(draw), Tier::kCompleted, loss});
    }
    search.Tell(members, 10, {});
    const Cma& cma = search.distribution();
    for (int j = 0; j < 2; ++j) {
      const double outside = std::abs(cma.mean()[j] - std::clamp(cma.mean()[j], 0.0, 1.0));
      EXPECT_LT(outside, 0.5);
    }
  }
  EXPECT_LT(best, 1e-6);
}

TEST(CmaSearch, InfeasibleMembersAreWorseThanStoppedAndThoseThanCompleted) {
  const auto mean_after = [](Tier left) {
    CmaSearch search({.continuous = {true, true}}, {.sigma = 0.1, .population = 40});
    Rng rng(2);
    std::vector<CmaMember> members;
    for (int i = 0; i < 40; ++i) {
      CmaDraw draw = search.Draw(rng, {});
      const bool is_left = draw.x[0] < 0.5;
      members.push_back({std::move(draw), is_left ? left : Tier::kCompleted, is_left ? -1.0 : 1.0});
    }
    search.Tell(members, 40, {});
    return search.distribution().mean()[0];
  };
  EXPECT_LT(mean_after(Tier::kCompleted), 0.5);  // the loss on the left is lower
  EXPECT_GT(mean_after(Tier::kStopped), 0.5);
  EXPECT_GT(mean_after(Tier::kInfeasible), 0.5);
}

}  // namespace
}  // namespace shirabe::suggestion
