// Warps, minimisation, acquisition, trust region and what is remembered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/statistics.h"
#include "suggestion/gp/acquisition.h"
#include "suggestion/gp/acquisition_search.h"
#include "suggestion/gp/lbfgs.h"
#include "suggestion/gp/scored_results.h"
#include "suggestion/gp/surrogate.h"
#include "tests/suggestion/gp_data.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

// ---- minimisation -------------------------------------------------------------------------------

Box UnitBox(int d) { return {VectorXd::Constant(d, -2), VectorXd::Constant(d, 2)}; }

double RosenbrockGpSearch(const VectorXd& x, VectorXd& g) {
  const double a = 1 - x[0], b = x[1] - x[0] * x[0];
  g.resize(2);
  g << -2 * a - 400 * x[0] * b, 200 * b;
  return a * a + 100 * b * b;
}

TEST(GpLbfgs, FindsTheEndOfACurvedValley) {
  Lbfgs search(VectorXd::Constant(2, -1.5), UnitBox(2),
               {.max_iterations = 200, .gradient_tolerance = 1e-8, .decrease_tolerance = 0});
  VectorXd gradient;
  while (!search.done()) {
    const double f = RosenbrockGpSearch(search.next(), gradient);
    search.Tell(f, gradient);
  }
  EXPECT_LT((search.x() - VectorXd::Ones(2)).norm(), 1e-5);
}

TEST(GpLbfgs, StopsAtTheWallOfTheBox) {
  Box box = UnitBox(3);
  box.lower[1] = box.upper[1] = 0.25;  // held
  Lbfgs search(VectorXd::Zero(3), box, {});
  const VectorXd target = VectorXd::Constant(3, 5);
  while (!search.done()) {
    const VectorXd x = search.next();
    search.Tell((x - target).squaredNorm(), 2 * (x - target));
  }
  EXPECT_EQ(search.x(), (VectorXd(3) << 2, 0.25, 2).finished());
}

TEST(GpLbfgs, ANumberThatIsNoneEndsItOrIsAvoided) {
  Lbfgs nowhere(VectorXd::Zero(1), UnitBox(1), {});
  nowhere.Tell(NAN, VectorXd::Zero(1));
  EXPECT_TRUE(nowhere.done());
  // log(1 + x) cannot be evaluated left of -1, which is where a first step leads.
  Lbfgs search(VectorXd::Zero(1), UnitBox(1), {.gradient_tolerance = 1e-9});
  int evaluations = 0;
  while (!search.done() && ++evaluations < 1000) {
    const double x = search.next()[0];
    search.Tell(x - 0.5 * std::log(1 + x), VectorXd::Constant(1, 1 - 0.5 / (1 + x)));
  }
  EXPECT_NEAR(search.x()[0], -0.5, 1e-6);
}

// ---- warps --------------------------------------------------------------------------------------

TEST(GpWarp, KeepsTheOrderAndCanBeUndone) {
  Rng rng(1);
  for (const WarpKind kind : kWarpKinds) {
    VectorXd scores(40);
    for (double& score : scores) score = -std::exp(6 * rng.Normal());
    scores[7] = scores[3];
    const Warp warp(kind, scores);
    EXPECT_NEAR(warp.warped().mean(), 0, 1e-12);
    EXPECT_NEAR(warp.warped().squaredNorm() / 40, 1, 1e-12);
    for (Index i = 0; i < 40; ++i) {
      for (Index j = 0; j < 40; ++j) {
        if (scores[i] < scores[j]) {
          EXPECT_LE(warp.warped()[i], warp.warped()[j]);
        }
      }
    }
    const Index best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    EXPECT_NEAR(warp.Unwarp(warp.warped()[best]), scores[best], 1e-9 * std::abs(scores[best]));
    EXPECT_GT(warp.Unwarp(warp.warped().maxCoeff() + 1), scores.maxCoeff());
  }
}

TEST(GpWarp, SurvivesWhatHistoriesHold) {
  const VectorXd extreme = (VectorXd(4) << -1e308, 1e308, 1e-308, 0).finished();
  const VectorXd two = (VectorXd(2) << 1, 2).finished();
  const VectorXd same_below = (VectorXd(5) << 0, 0, 0, 0, 1).finished();
  for (const WarpKind kind : kWarpKinds) {
    for (const VectorXd& scores : {extreme, two, same_below}) {
      const Warp warp(kind, scores);
      EXPECT_TRUE(warp.warped().allFinite());
      Index best = 0;
      scores.maxCoeff(&best);
      EXPECT_EQ(warp.warped()[best], warp.warped().maxCoeff());
    }
  }
  EXPECT_EQ(Standardize(VectorXd::Constant(3, 0.1)), VectorXd::Zero(3));
}

TEST(GpResults, OneThatIsFarWorseThanAllOthersHidesNoDifferences) {
  std::vector<double> scores = {-0.5, -0.25, -1e25, -0.125, -4};
  BoundWorst(scores);
  EXPECT_THAT(scores, testing::ElementsAre(-0.5, -0.25, -0.5 - 0.375e12, -0.125, -4));
  std::vector<double> two = {-1e25, -1};
  BoundWorst(two);
  EXPECT_EQ(two[0], -1e25) << "no others";
  std::vector<double> close = {-1 - 1e-15, -1, -5, -7};
  BoundWorst(close);
  EXPECT_EQ(close[3], -7) << "that the best are close makes the others no outliers";
  std::vector<double> huge = {-1e308, 1e308, 0, -1};
  BoundWorst(huge);
  EXPECT_EQ(huge[0], -1e308);
}

TEST(GpResults, APartialOneIsNoBetterThanTheBestWholeOne) {
  History history(Make({Double("x", {0, 1})}));
  const auto add = [&](double loss, bool partial) {
    history.Add({0.5}, {.state = TrialState::kCompleted,
                        .early_stopped = partial,
                        .partial = partial,
                        .loss = loss});
  };
  add(0.1, true);
  add(3, false);
  add(2, false);
  add(0.5, true);
  add(2.5, true);
  add(1, false);
  EXPECT_THAT(Gather(history, 0).scores, testing::ElementsAre(-1, -3, -2, -1, -2.5, -1));
}

// Written from the formulas of the paper, for one λ: (2.1) and (3.1).
double PlainYeoJohnson(double z, double power) {
  if (z >= 0) return power == 0 ? std::log(1 + z) : (std::pow(1 + z, power) - 1) / power;
  return power == 2 ? -std::log(1 - z) : -(std::pow(1 - z, 2 - power) - 1) / (2 - power);
}

double PlainLikelihood(const VectorXd& z, double power) {
  VectorXd mapped(z.size());
  double jacobian = 0;
  for (Index i = 0; i < z.size(); ++i) {
    mapped[i] = PlainYeoJohnson(z[i], power);
    jacobian += (z[i] < 0 ? -1 : 1) * std::log(1 + std::abs(z[i]));
  }
  const double variance = (mapped.array() - mapped.mean()).square().mean();
  const auto n = static_cast<double>(z.size());
  return -0.5 * n * std::log(variance) + (power - 1) * jacobian;
}

TEST(GpWarp, YeoJohnsonIsTheOneOfTheGreatestLikelihood) {
  Rng rng(2);
  for (const double skew : {-1.5, -0.5, 0.0, 0.7, 2.0}) {
    VectorXd scores(60);
    for (double& score : scores) {
      const double normal = rng.Normal();
      score = skew == 0 ? normal : std::exp(skew * normal) * (skew < 0 ? -1 : 1);
    }
    const VectorXd z = Standardize(scores);
    double best = 1;
    for (int i = -40; i <= 60; ++i) {
      const double power = i / 10.0;
      if (PlainLikelihood(z, power) > PlainLikelihood(z, best)) best = power;
    }
    VectorXd mapped(z.size());
    for (Index i = 0; i < z.size(); ++i) mapped[i] = PlainYeoJohnson(z[i], best);
    const Warp warp(WarpKind::kYeoJohnson, scores);
    EXPECT_LT((warp.warped() - Standardize(mapped)).cwiseAbs().maxCoeff(), 1e-6) << skew;
  }
}

// Of five levels the middle one is the median: two lie below it, and it counts half itself.
TEST(GpWarp, HalfRankGivesTheWorseHalfTheQuantilesOfANormalDistribution) {
  const VectorXd scores = (VectorXd(6) << -100, -1, -1, 0, 1, 2).finished();
  const VectorXd odd = (VectorXd(5) << -100, -1, 0, 1, 2).finished();
  const double deviation = std::sqrt((0 + 1 + 4) / 3.0);  // of the better half, from the median
  const VectorXd y = Warp(WarpKind::kHalfRank, odd).warped();
  const double unit = y[3] - y[2];
  EXPECT_NEAR(y[4] - y[2], 2 * unit, 1e-9);
  EXPECT_NEAR((y[1] - y[2]) / unit, deviation * NormalQuantile(0.5 * 1.5 / 2.5), 1e-9);
  EXPECT_NEAR((y[0] - y[2]) / unit, deviation * NormalQuantile(0.5 * 0.5 / 2.5), 1e-9);
  // Where the median lies between two levels, -0.5 here, it counts for nothing.
  const VectorXd even = Warp(WarpKind::kHalfRank, scores).warped();
  const double one = even[4] - even[3], median = even[3] - 0.5 * one;
  const double spread = std::sqrt((0.25 + 2.25 + 6.25) / 3.0);
  EXPECT_NEAR((even[1] - median) / one, spread * NormalQuantile(0.5 * 1.5 / 2), 1e-9);
  EXPECT_NEAR((even[0] - median) / one, spread * NormalQuantile(0.5 * 0.5 / 2), 1e-9);
}

TEST(GpWarp, ConcordanceTellsGoodFromBadOrders) {
  const VectorXd scores = VectorXd::LinSpaced(20, 0, 1);
  EXPECT_EQ(Concordance(scores, scores), 1);
  EXPECT_EQ(Concordance(scores, -scores), 0);
}

// ---- acquisition --------------------------------------------------------------------------------

TEST(GpAcquisition, ItsGradientIsThatOfItsValue) {
  for (const Shape& shape : {Shape{12, 3, 0}, Shape{15, 2, 2}}) {
    const Inputs inputs = RandomInputs(shape, 20);
    Posterior objective(RandomTheta(shape, 21), inputs), labels(RandomTheta(shape, 22), inputs);
    objective.SetTargets(ValuesAt(inputs));
    objective.Split(3);
    objective.Append(RandomInputs({1, shape.numeric, shape.categorical}, 23),
                     (RowVectorXd(3) << -1, 0.2, 1.5).finished());
    labels.SetTargets(ValuesAt(inputs).array().sign().matrix());
    const RowVectorXd incumbents = (RowVectorXd(3) << 1, 1.2, 3).finished();
    for (const Utility utility : {Utility::kLogEi, Utility::kLogPi, Utility::kUcb}) {
      const ObjectiveAcquisition acquisition(
          utility, objective, incumbents,
          {{.posterior = &labels, .noise = labels.theta().noise()}});
      const Inputs points = RandomInputs({8, shape.numeric, shape.categorical}, 24);
      MatrixXd gradient;
      const VectorXd values = acquisition.Evaluate(points, &gradient);
      EXPECT_EQ(values, acquisition.Evaluate(points));
      for (int j = 0; j < shape.numeric; ++j) {
        constexpr double kStep = 1e-6;
        Inputs up = points, down = points;
        up.x.col(j).array() += kStep;
        down.x.col(j).array() -= kStep;
        const VectorXd central =
            (acquisition.Evaluate(up) - acquisition.Evaluate(down)) / (2 * kStep);
        for (Index i = 0; i < points.rows(); ++i) {
          EXPECT_NEAR(gradient(i, j), central[i], 1e-5 * std::max(1.0, std::abs(central[i])));
        }
      }
    }
  }
}

TEST(GpAcquisition, NeverLosesItsSlopeFarFromTheIncumbent) {
  const Shape shape{10, 2, 0};
  const Inputs inputs = RandomInputs(shape, 25);
  Posterior objective(DefaultTheta(2, 0), inputs);
  objective.SetTargets(ValuesAt(inputs));
  const ObjectiveAcquisition acquisition(Utility::kLogEi, objective, RowVectorXd::Constant(1, 1e6),
                                         {});
  MatrixXd gradient;
  EXPECT_TRUE(acquisition.Evaluate(RandomInputs({5, 2, 0}, 26), &gradient).allFinite());
  EXPECT_GT(gradient.rowwise().norm().minCoeff(), 0);
}

// ---- search -------------------------------------------------------------------------------------

// The largest acquisition on a fine lattice is not larger than what the search finds.
TEST(GpSearch, FindsWhatALatticeFinds) {
  const Space space = Make({Double("a", {0, 1}), Double("b", {0, 1})});
  const InputLayout layout(space);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Inputs inputs = RandomInputs({12, 2, 0}, 30 + seed);
    Posterior objective(RandomTheta({12, 2, 0}, seed), inputs);
    const VectorXd y = ValuesAt(inputs);
    objective.SetTargets(y);
    Index best = 0;
    const ObjectiveAcquisition acquisition(Utility::kLogEi, objective,
                                           RowVectorXd::Constant(1, y.maxCoeff(&best)), {});
    const Region region{{VectorXd::Zero(2), VectorXd::Ones(2)}, inputs.Row(best)};
    const double found =
        AcquisitionSearch(layout, acquisition, region, Rng(seed)).Run(true).front().value;
    Inputs lattice = layout.Empty(101 * 101);
    for (Index i = 0; i < lattice.rows(); ++i) {
      lattice.x.row(i) << static_cast<double>(i % 101) / 100, static_cast<double>(i / 101) / 100;
    }
    EXPECT_GE(found, acquisition.Evaluate(lattice).maxCoeff() - 1e-3);
  }
}

TEST(GpSearch, MovesThroughDiscreteSpacesByNeighbours) {
  const Space space = Make({Int("n", {1, 1000}), Int("m", {1, 6}),
                            Categorical("c", {"a", "b", "d"}), Double("x", {0, 1})});
  const InputLayout layout(space);
  Rng rng(40);
  std::vector<Point> points;
  for (int i = 0; i < 20; ++i) points.push_back(space.Sample(rng));
  const Inputs inputs = layout.From(points);
  Posterior objective(DefaultTheta(3, 1), inputs);
  const VectorXd y = ValuesAt(inputs);
  objective.SetTargets(y);
  Index best = 0;
  const ObjectiveAcquisition acquisition(Utility::kLogEi, objective,
                                         RowVectorXd::Constant(1, y.maxCoeff(&best)), {});
  const Region region{{VectorXd::Zero(3), VectorXd::Ones(3)}, inputs.Row(best)};
  const std::vector<Ranked> ranked =
      AcquisitionSearch(layout, acquisition, region, Rng(41)).Run(true);
  double by_lot = -HUGE_VAL;
  for (int i = 0; i < 20000; ++i) {
    by_lot = std::max(by_lot, acquisition.Evaluate(layout.From({space.Sample(rng)}))[0]);
  }
  EXPECT_GE(ranked.front().value, by_lot - 1e-3);
  EXPECT_EQ(space.Canonical(ranked.front().point)[0], ranked.front().point[0]);
}

// ---- trust region -------------------------------------------------------------------------------

TEST(GpTrustRegion, GrowsWithSuccessAndShrinksWithout) {
  EXPECT_EQ(TrustRegionSide(VectorXd::LinSpaced(10, 0, 1), 2, 10), 0.8);
  EXPECT_EQ(TrustRegionSide(VectorXd::LinSpaced(13, 0, 1), 2, 10), 1.6);
  EXPECT_EQ(TrustRegionSide(VectorXd::LinSpaced(14, 1, 0), 2, 10), 0.4);
  EXPECT_EQ(TrustRegionSide(VectorXd::LinSpaced(14, 1, 0), 9, 10), 0.8);
  EXPECT_EQ(TrustRegionSide(VectorXd::LinSpaced(10 + 4 * 7, 1, 0), 2, 10), 0.8);  // anew
  // Three successes are three in a row.
  EXPECT_EQ(TrustRegionSide((VectorXd(5) << 0, 1, 2, 0, 3).finished(), 2, 1), 0.8);
  EXPECT_EQ(TrustRegionSide((VectorXd(6) << 0, 1, 2, 0, 3, 4).finished(), 2, 1), 0.8);
  EXPECT_EQ(TrustRegionSide((VectorXd(7) << 0, 1, 2, 0, 3, 4, 5).finished(), 2, 1), 1.6);
  // Whatever is added to or multiplied with all scores.
  const VectorXd scores = (VectorXd(9) << 1, 2, 0, 3, 3.1, 3.2, 3.3, 3.4, 3.5).finished();
  EXPECT_EQ(TrustRegionSide(scores, 2, 2), TrustRegionSide(1e6 + 1e3 * scores.array(), 2, 2));
}

TEST(GpTrustRegion, IsLongerWhereTheFunctionIsFlat) {
  const Box box = TrustRegion(0.2, VectorXd::Constant(2, 0.5), (VectorXd(2) << 1, 4).finished());
  const VectorXd width = box.upper - box.lower;
  EXPECT_NEAR(width[1] / width[0], 4, 1e-12);
  EXPECT_NEAR(width.prod(), 0.04, 1e-12);
  const Box edge = TrustRegion(1.6, VectorXd::Ones(1), VectorXd::Ones(1));
  EXPECT_EQ(edge.upper[0], 1);
}

// ---- memory -------------------------------------------------------------------------------------

TEST(GpMemory, ReadsBackWhatItWrote) {
  SurrogateMemo memory;
  memory.fitted_at = 17;
  memory.warp = WarpKind::kHalfRank;
  memory.thetas[2] = RandomTheta({5, 3, 1}, 50);
  const std::string text = memory.Serialize();
  const SurrogateMemo back = SurrogateMemo::Parse(text, Theta::Size(3, 1));
  EXPECT_EQ(back.fitted_at, 17);
  EXPECT_EQ(back.warp, WarpKind::kHalfRank);
  EXPECT_EQ(back.thetas[2].values, memory.thetas[2].values);
  EXPECT_EQ(back.thetas[0].values.size(), 0);
  EXPECT_EQ(SurrogateMemo::Parse(text, Theta::Size(4, 1)).fitted_at, 0) << "of another space";
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_EQ(SurrogateMemo::Parse(damaged, Theta::Size(3, 1)).fitted_at, 0) << i;
    EXPECT_EQ(SurrogateMemo::Parse(text.substr(0, i), Theta::Size(3, 1)).fitted_at, 0) << i;
  }
}

TEST(GpMemory, MakesTheNextFitQuickAndNoWorse) {
  const Inputs inputs = RandomInputs({40, 3, 0}, 51);
  const VectorXd y = ValuesAt(inputs);
  SurrogateMemo cold, warm;
  Learn(inputs.Rows(0, 39), y.head(39), warm);
  EXPECT_EQ(warm.fitted_at, 39);
  const Inputs points = RandomInputs({50, 3, 0}, 52);
  const VectorXd one = Learn(inputs, y, cold).posterior.Predict(points).mean.col(0);
  const VectorXd other = Learn(inputs, y, warm).posterior.Predict(points).mean.col(0);
  EXPECT_EQ(warm.fitted_at, 40);
  EXPECT_LT((one - other).cwiseAbs().mean(), 0.1);
}

// From the θ of one point less: as good a fit, for no more work.
TEST(GpMemory, AFitThatBeginsWhereTheLastOneEndedCostsLess) {
  int anew = 0, on = 0;
  for (uint64_t seed = 51; seed < 61; ++seed) {
    const Inputs inputs = RandomInputs({40, 3, 0}, seed);
    const VectorXd y = ValuesAt(inputs);
    const Fitted last = Fit(inputs.Rows(0, 39), y.head(39), DefaultTheta(3, 0));
    const Fitted first = Fit(inputs, y, DefaultTheta(3, 0)), next = Fit(inputs, y, last.theta);
    EXPECT_LE(next.value, first.value + 0.5) << seed;
    anew += first.evaluations;
    on += next.evaluations;
  }
  EXPECT_GT(on, 0);
  EXPECT_LT(on, anew);
}

// ---- cache --------------------------------------------------------------------------------------

TEST(GpCache, AnswersAsIfItWereNotThere) {
  const Inputs inputs = RandomInputs({30, 3, 1}, 60);
  const VectorXd y = ValuesAt(inputs);
  SurrogateMemo memory;
  const Surrogate fresh = Learn(inputs, y, memory);
  SurrogateCache cache(1 << 20);
  const auto first = cache.Learn(inputs, y, SurrogateMemo());
  const auto again = cache.Learn(inputs, y, SurrogateMemo());
  EXPECT_EQ(first, again) << "fitted twice";
  EXPECT_EQ(first->memo.Serialize(), memory.Serialize());
  const Inputs points = RandomInputs({20, 3, 1}, 61);
  EXPECT_EQ(first->surrogate.posterior.Predict(points).mean, fresh.posterior.Predict(points).mean);
  // Another value, another point or another memory is another question.
  VectorXd other = y;
  other[29] += 1e-9;
  EXPECT_NE(cache.Learn(inputs, other, SurrogateMemo()), first);
  EXPECT_NE(cache.Learn(inputs, y, memory), first);
  EXPECT_EQ(cache.Learn(inputs, y, SurrogateMemo()), first);
}

TEST(GpCache, HoldsTheLastOnesThatFit) {
  const Inputs inputs = RandomInputs({20, 2, 0}, 62);
  const VectorXd y = ValuesAt(inputs);
  SurrogateCache cache(10000);
  const auto first = cache.Learn(inputs.Rows(0, 15), y.head(15), SurrogateMemo());
  for (int n = 16; n <= 20; ++n) {
    cache.Learn(inputs.Rows(0, n), y.head(n), SurrogateMemo());
    EXPECT_LE(cache.bytes(), 10000);
    EXPECT_GT(cache.bytes(), 0);
  }
  EXPECT_NE(cache.Learn(inputs.Rows(0, 15), y.head(15), SurrogateMemo()), first) << "it was kept";
  // One that is larger than all there is room for is answered, and not kept.
  SurrogateCache none(0);
  EXPECT_NE(none.Learn(inputs, y, SurrogateMemo()), nullptr);
  EXPECT_EQ(none.bytes(), 0);
}

}  // namespace
}  // namespace shirabe::suggestion::gp
