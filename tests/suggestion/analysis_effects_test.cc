// Partial dependence, ablation, and the functions that they look at.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "suggestion/analysis/fitted_history.h"
#include "suggestion/analysis/importance.h"
#include "suggestion/analysis/partial_dependence.h"
#include "tests/suggestion/analysis_data.h"

namespace shirabe::suggestion::analysis {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

Functions DrawnFrom(const PosteriorFunctions& drawn) {
  return [&drawn](const gp::Inputs& inputs) { return drawn.Losses(inputs); };
}

double Valley(const Point& x) {
  return (x[0] - 0.7) * (x[0] - 0.7) + 0.3 * x[1] + 0.2 * x[0] * x[2];
}

TEST(PartialDependenceTest, IsTheMeanOverAllOthers) {
  const gp::InputLayout layout(Reals(3));
  const auto found = PartialDependenceOf(layout, Exactly(layout, Valley), {0}, 1);
  const GridAxis& grid = found.axes[0];
  EXPECT_EQ(grid.coordinates.front(), 0);
  EXPECT_EQ(grid.coordinates.back(), 1);
  ASSERT_EQ(found.losses.size(), grid.coordinates.size());
  Rng rng(5);
  for (size_t i = 0; i < grid.coordinates.size(); i += 8) {
    const double x = grid.coordinates[i];
    double sum = 0;
    constexpr int kDrawn = 20000;
    for (int k = 0; k < kDrawn; ++k) sum += Valley({x, rng.Uniform(), rng.Uniform()});
    EXPECT_NEAR(found.losses[i].value, sum / kDrawn, 0.005);
  }
}

// Where a parameter does not exist, its curve says nothing of what is found.
TEST(PartialDependenceTest, IsTheMeanWhereTheParameterExists) {
  const Space space = Make({Categorical("opt", {"a", "b", "c", "d"}), Double("x", {0, 1})},
                           R"({"conditions": [{"parameter": "x", "when": {"opt": "a"}}]})");
  const gp::InputLayout layout(space);
  const auto loss = [](const Point& point) { return point[0] == 0 ? point[1] : 100; };
  const PartialDependence found =
      PartialDependenceOf(layout, Exactly(layout, loss), {1}, /*cost=*/1);
  ASSERT_EQ(found.losses.size(), 41u);
  for (size_t i = 0; i < found.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i].value, found.axes[0].coordinates[i], 1e-12);
  }
  const PartialDependence parent =
      PartialDependenceOf(layout, Exactly(layout, loss), {0}, /*cost=*/1);
  EXPECT_NEAR(parent.losses[0].value, 0.5, 0.02);
  EXPECT_EQ(parent.losses[1].value, 100);
}

TEST(PartialDependenceTest, OfTwoTheSecondVariesFastest) {
  const Space space =
      Make({Double("x", {0, 1}), Categorical("c", {"a", "b"}), Double("z", {0, 1})});
  const gp::InputLayout layout(space);
  const auto loss = [](const Point& x) { return x[0] + 10 * x[1] + x[2]; };
  const auto found = PartialDependenceOf(layout, Exactly(layout, loss), {0, 1}, 1);
  ASSERT_EQ(found.axes[1].coordinates, (std::vector<double>{0, 1}));
  for (size_t i = 0; i < found.axes[0].coordinates.size(); ++i) {
    const double x = found.axes[0].coordinates[i];
    EXPECT_NEAR(found.losses[2 * i].value, x + 0.5, 0.01);
    EXPECT_NEAR(found.losses[2 * i + 1].value, x + 10.5, 0.01);
  }
}

TEST(PartialDependenceTest, GridsAreValuesThatCanBeTried) {
  const Space space = Make({Int("few", {1, 5}), Int("many", {1, 1000}),
                            Categorical("c", {"a", "b", "d"}), Int("one", {2, 2})});
  const gp::InputLayout layout(space);
  EXPECT_EQ(GridOf(layout, 0, 41).coordinates.size(), 5u);
  const GridAxis many = GridOf(layout, 1, 41);
  EXPECT_EQ(many.coordinates.size(), 41u);
  EXPECT_EQ(many.left_out, 959u);
  EXPECT_EQ(space.axis(1).Level(many.coordinates.front()), 0u);
  EXPECT_EQ(space.axis(1).Level(many.coordinates.back()), 999u);
  for (const double x : many.coordinates) EXPECT_EQ(x, space.axis(1).Canonical(x));
  EXPECT_EQ(GridOf(layout, 2, 2).coordinates, (std::vector<double>{0, 1}));
  EXPECT_EQ(GridOf(layout, 2, 2).left_out, 1u);
  EXPECT_EQ(GridOf(layout, 3, 41).coordinates.size(), 1u);
}

TEST(PartialDependenceTest, OfAHistoryIsNearTheTruthAndWithinItsBand) {
  const FittedHistory history(RandomHistory(Reals(3), 60, Valley));
  const PosteriorFunctions drawn = history.Draw(64);
  const auto found = PartialDependenceOf(history.layout(), DrawnFrom(drawn), {0}, drawn.cost());
  for (size_t i = 0; i < found.losses.size(); ++i) {
    const double x = found.axes[0].coordinates[i];
    const double truth = (x - 0.7) * (x - 0.7) + 0.15 + 0.1 * x;
    EXPECT_NEAR(found.losses[i].value, truth, 0.03);
    EXPECT_LE(found.losses[i].low, found.losses[i].value);
    EXPECT_LE(found.losses[i].value, found.losses[i].high);
  }
}

// f = 10 - 3 [a] - 2 [b] - 4 [a][b] - [c], all from 0 to 1. Alone a gains 3, b 2, c 1; after a, b
// gains 6; then c.
TEST(AblationTest, FlipsTheLargestGainFirst) {
  const Space space = Reals(4);
  const gp::InputLayout layout(space);
  const auto loss = [](const Point& x) {
    return 10 - 3 * x[0] - 2 * x[1] - 4 * x[0] * x[1] - x[2] + 100 * x[3];
  };
  const AblationPath path = Ablate(layout, Exactly(layout, loss), {0, 0, 0, 0.5}, {1, 1, 1, 0.5});
  EXPECT_NEAR(path.from.value, 60, 1e-9);
  EXPECT_NEAR(path.to.value, 50, 1e-9);
  ASSERT_EQ(path.steps.size(), 3u);  // the last does not differ
  const int axes[] = {0, 1, 2};
  const double gains[] = {3, 6, 1}, losses[] = {57, 51, 50};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(path.steps[i].axis, axes[i]);
    EXPECT_NEAR(path.steps[i].gain.value, gains[i], 1e-9);
    EXPECT_NEAR(path.steps[i].loss.value, losses[i], 1e-9);
  }
}

TEST(AblationTest, PutsWhatIsWorseLast) {
  const gp::InputLayout layout(Reals(2));
  const auto loss = [](const Point& x) { return x[0] - 2 * x[1]; };
  const AblationPath path = Ablate(layout, Exactly(layout, loss), {0, 0}, {1, 1});
  EXPECT_EQ(path.steps[0].axis, 1);
  EXPECT_NEAR(path.steps[1].gain.value, -1, 1e-12);
}

TEST(AblationTest, OfManyParametersComesToTheSameEnd) {
  const Space space = Reals(100);
  const gp::InputLayout layout(space);
  const auto loss = [](const Point& x) {
    double sum = 0;
    for (size_t j = 0; j < x.size(); ++j) sum -= static_cast<double>(j) * x[j];
    return sum;
  };
  const AblationPath path = Ablate(layout, Exactly(layout, loss), Point(100, 0.0), Point(100, 1.0));
  ASSERT_EQ(path.steps.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(path.steps[i].axis, 99 - i);
  EXPECT_NEAR(path.steps.back().loss.value, path.to.value, 1e-9);
}

TEST(AblationTest, ComparesTheMedianAndTheBestUnlessTold) {
  History history(Reals(1));
  const auto add = [&](double x, TrialState state, double loss) {
    history.Add({x}, {.state = state, .loss = loss});
  };
  add(0.1, TrialState::kCompleted, 5);
  EXPECT_FALSE(DefaultEnds(history));
  add(0.2, TrialState::kInfeasible, 0);
  add(0.3, TrialState::kCompleted, 1);
  add(0.4, TrialState::kCompleted, 3);
  const auto ends = DefaultEnds(history);
  ASSERT_TRUE(ends);
  EXPECT_EQ(ends->to, 2);
  EXPECT_EQ(ends->from, 3);
}

// ---- the posterior -----------------------------------------------------------------------------

// Mean and variance of the draws against the closed form of the same posterior.
TEST(PosteriorFunctionsTest, DrawsHaveTheMeanAndTheVarianceOfThePosterior) {
  const Space spaces[] = {
      Reals(2), Make({Categorical("a", {"p", "q", "r"}), Categorical("b", {"p", "q", "r"})}),
      Make({Double("x", {0, 1}), Categorical("a", {"p", "q", "r"})})};
  for (const Space& space : spaces) {
    const gp::InputLayout layout(space);
    std::vector<Point> points;
    VectorXd scores(12);
    Rng rng(7);
    for (Index i = 0; i < scores.size(); ++i) {
      points.push_back(space.Sample(rng));
      scores[i] = std::sin(3 * points.back()[0]) + points.back()[1 % space.size()];
    }
    const gp::Inputs inputs = layout.From(points);
    gp::Warp warp(gp::WarpKind::kNone, scores);
    gp::Theta theta = gp::DefaultTheta(inputs.numeric(), inputs.categorical());
    gp::Posterior posterior(theta, inputs);
    posterior.SetTargets(warp.warped());
    constexpr int kDrawn = 2000;
    const gp::Surrogate surrogate{warp, posterior};
    const PosteriorFunctions drawn(layout, surrogate, {kDrawn, 0}, Rng(1));
    std::vector<Point> asked;
    for (int i = 0; i < 20; ++i) asked.push_back(space.Sample(rng));
    const gp::Inputs at = layout.From(asked);
    const auto truth = posterior.Predict(at);
    const MatrixXd losses = drawn.Losses(at);
    const double unit = warp.Unwarp(1) - warp.Unwarp(0);
    for (Index i = 0; i < at.rows(); ++i) {
      const double deviation = unit * std::sqrt(truth.variance[i]);
      const VectorXd draws = losses.row(i).tail(kDrawn);
      EXPECT_NEAR(losses(i, 0), -warp.Unwarp(truth.mean(i, 0)), 1e-6);
      EXPECT_NEAR(draws.mean(), losses(i, 0), 0.15 * deviation + 1e-3);
      const double spread = std::sqrt((draws.array() - draws.mean()).square().mean());
      EXPECT_NEAR(spread / deviation, 1, 0.2) << i;
    }
  }
}

TEST(LossTableTest, IsTheWarpAndGoesOnGently) {
  VectorXd scores(50);
  for (Index i = 0; i < 50; ++i) scores[i] = -std::exp(0.4 * static_cast<double>(i));
  for (const gp::WarpKind kind : gp::kWarpKinds) {
    const gp::Warp warp(kind, scores);
    const LossTable table(warp);
    const double low = warp.warped().minCoeff(), high = warp.warped().maxCoeff();
    const double range = -scores.minCoeff() + scores.maxCoeff();
    double before = std::numeric_limits<double>::infinity();
    for (double y = low - 1; y < high + 1; y += 0.01) {
      const double loss = table.At(y);
      EXPECT_LE(loss, before);
      before = loss;
      if (y >= low && y <= high) {
        EXPECT_NEAR(loss, -warp.Unwarp(y), 0.01 * range);
      }
    }
    // One deviation beyond the worst and the best.
    EXPECT_LE(table.At(low - 1), -scores.minCoeff() + range / (high - low) + 1e-6);
    EXPECT_GE(table.At(high + 1), -scores.maxCoeff() - range / (high - low) - 1e-6);
  }
}

// ---- hostile histories -------------------------------------------------------------------------

std::string TooFew(const History& history) { return FittedHistory(history).basis().too_few; }

double Slope(const Point& x) { return x[0]; }

TEST(FittedHistoryTest, SaysWhyThereIsNoModel) {
  const Space space = Reals(2);
  const auto always = [](double value) { return [value](const Point&) { return value; }; };
  EXPECT_EQ(TooFew(History(space)), "no trial has a result yet");
  EXPECT_EQ(TooFew(RandomHistory(space, 1, Slope)),
            "one trial has a result; there is nothing to compare it with");
  EXPECT_EQ(TooFew(RandomHistory(space, 3, Slope)), "3 trials have a result; it takes 4");
  EXPECT_EQ(TooFew(RandomHistory(space, 9, always(7))), "all 9 results are the same");
  EXPECT_EQ(TooFew(RandomHistory(space, 9, always(std::nan("")))), "no trial has a result yet");
  EXPECT_EQ(TooFew(RandomHistory(space, 9, [](const Point& x) { return 1 + 1e-17 * x[0]; })),
            "all 9 results are the same");
  EXPECT_EQ(TooFew(RandomHistory(space, 4, Slope)), "");
}

TEST(FittedHistoryTest, CountsTheTrialsBehindIt) {
  const Space space = Reals(2);
  History history = RandomHistory(space, 1100, Slope);
  history.Add({0.5, 0.5}, {.state = TrialState::kActive});
  history.Add({0.5, 0.5}, {.state = TrialState::kInfeasible});
  history.Add({0.5, 0.5},
              {.state = TrialState::kCompleted, .loss = std::numeric_limits<double>::infinity()});
  const Basis basis = BasisOf(history);
  EXPECT_EQ(basis.results, 1100);
  EXPECT_EQ(basis.failed, 2);
  EXPECT_EQ(basis.active, 1);
  const FittedHistory fitted(history);
  EXPECT_EQ(fitted.basis().left_out, 100);
  EXPECT_EQ(fitted.observed(), 1000);
}

// None of them ends the program or gives a figure that is no number.
TEST(FittedHistoryTest, TakesHostileResults) {
  const Space one = Reals(1);
  std::vector<History> histories;
  histories.push_back(RandomHistory(one, 30, Slope));
  histories.emplace_back(one);  // one point, many results
  for (int i = 0; i < 20; ++i) {
    histories.back().Add({0.5}, {.state = TrialState::kCompleted, .loss = i % 3 * 1.0});
  }
  histories.emplace_back(one);  // the largest numbers that there are
  for (int i = 0; i < 20; ++i) {
    histories.back().Add(
        {i / 20.0}, {.state = TrialState::kCompleted, .loss = (i % 2 == 0 ? 1 : -1) * 1.7e308});
  }
  histories.emplace_back(one);  // one result in another world
  for (int i = 0; i < 20; ++i) {
    histories.back().Add({i / 20.0},
                         {.state = TrialState::kCompleted, .loss = i == 3 ? 1e300 : i * 1e-9});
  }
  histories.push_back(
      RandomHistory(Make({Categorical("c", {"a"}), Int("k", {1, 1})}), 9,
                    [rng = Rng(1)](const Point&) mutable { return rng.Uniform(); }));
  for (const History& history : histories) {
    const FittedHistory fitted(history);
    if (!fitted.has_model()) continue;
    const PosteriorFunctions drawn = fitted.Draw(8);
    const auto found = PartialDependenceOf(fitted.layout(), DrawnFrom(drawn), {0}, drawn.cost());
    for (const Estimate& loss : found.losses) {
      EXPECT_FALSE(std::isnan(loss.value) || std::isnan(loss.low) || std::isnan(loss.high));
    }
  }
}

// The memo of the algorithm saves the fit, also behind the line that `auto` puts before it.
TEST(FittedHistoryTest, TakesTheFitOfTheAlgorithm) {
  const Space space = Reals(2);
  History history = RandomHistory(space, 80, Slope);
  gp::SurrogateMemo memo;
  memo.fitted_at = 80;
  memo.warp = gp::WarpKind::kNone;
  for (gp::Theta& theta : memo.thetas) theta = gp::DefaultTheta(2, 0);
  memo.thetas[0].values[0] = 0.123;
  for (const char* head : {"", "bayesianoptimization\n"}) {
    history.set_memo(head + memo.Serialize());
    EXPECT_EQ(FittedHistory(history).surrogate().posterior.theta().values[0], 0.123) << head;
  }
  history.set_memo("what another algorithm keeps\nin lines");
  EXPECT_NE(FittedHistory(history).surrogate().posterior.theta().values[0], 0.123);
}

}  // namespace
}  // namespace shirabe::suggestion::analysis
