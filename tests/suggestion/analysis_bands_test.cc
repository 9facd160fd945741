// What the bands of the analyses promise: that the truth lies within them, also where the trials
// crowd at the optimum.
#include <gtest/gtest.h>

#include <cmath>

#include "suggestion/analysis/estimate.h"
#include "suggestion/analysis/importance.h"
#include "suggestion/analysis/posterior_functions.h"
#include "tests/suggestion/analysis_data.h"

namespace shirabe::suggestion::analysis {
namespace {

TEST(EstimateTest, HasThePlacesOfFiveAndNinetyFivePercent) {
  Eigen::VectorXd values(40);
  values[0] = 20;
  for (int i = 1; i < 40; ++i) values[i] = 40 - i;  // 39 draws: places 2 and 38 of 40
  const Estimate estimate = EstimateOf(values);
  EXPECT_DOUBLE_EQ(estimate.low, 2);
  EXPECT_DOUBLE_EQ(estimate.high, 38);
  EXPECT_EQ(EstimateOf(values.head(1)).low, 20);
  EXPECT_EQ(EstimateOf(values.head(3)).low, 20);  // the value is below both
  EXPECT_EQ(EstimateOf(values.head(3)).high, 39);
}

// Of what no trial repeats it is not known how much is noise: draws of the space have none to all
// of it as their own, the mean has none, and a function has one value at a point.
TEST(PosteriorFunctionsTest, DrawsOfTheSpaceHaveAShareOfTheNoise) {
  Rng noise(3);
  const Loss loss = [&](const Point& x) { return x[0] + 0.3 * noise.Normal(); };
  const FittedHistory fitted(RandomHistory(Reals(2), 100, loss, 1));
  gp::Inputs points = Spread(fitted.layout(), {256, 0, 1}, 5);
  points.x.row(1) = points.x.row(0);
  const PosteriorFunctions smooth = fitted.Draw(32), rough = fitted.DrawOfSpace(32);
  const Eigen::MatrixXd own = rough.Losses(points) - smooth.Losses(points);
  EXPECT_TRUE(own.col(0).isZero(0));
  EXPECT_EQ(own.row(0), own.row(1));
  double least = 1, most = 0;
  for (int s = 1; s <= 32; ++s) {
    const double deviation = std::sqrt(own.col(s).squaredNorm() / 256);
    least = std::min(least, deviation);
    most = std::max(most, deviation);
    EXPECT_LT(std::abs(own.col(s).mean()), 0.25 * deviation) << s;  // up and down alike
    EXPECT_LT(std::abs(own.col(s).dot(own.col(s % 32 + 1))), 0.35 * 256 * 0.09) << s;
  }
  EXPECT_LT(least, 0.15);
  EXPECT_GT(most, 0.2);
  EXPECT_LT(most, 0.45);
}

// Quantiles of 32 draws as of a population would hold 85 %.
TEST(EstimateTest, HoldsNinetyOfAHundredOtherDraws) {
  Rng rng(7);
  const int kTimes = 20'000;
  int within = 0;
  for (int i = 0; i < kTimes; ++i) {
    Eigen::VectorXd values(33);
    for (double& value : values) value = rng.Normal();
    values[0] = 0;
    const double another = rng.Normal();
    const Estimate band = EstimateOf(values);
    within += band.low <= another && another <= band.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(within) / kTimes, 0.9, 0.01);
}

gp::Inputs InputsOf(const gp::InputLayout& layout, const History& history) {
  std::vector<Point> points;
  for (int64_t i = 0; i < history.size(); ++i) points.push_back(history.point(i));
  return layout.From(points);
}

// `outside` trials anywhere, then `crowd` around x0 = 0.2 with little of x1 and all of the others,
// as a search leaves them that has found where the objective is best.
History CrowdedHistory(const Space& space, const Loss& loss, int outside, int crowd) {
  History history(space);
  Rng rng(1);
  const auto add = [&](const Point& point) {
    history.Add(point, {.state = TrialState::kCompleted, .loss = loss(point)});
  };
  for (int i = 0; i < outside; ++i) add(space.Sample(rng));
  for (int i = 0; i < crowd; ++i) {
    Point point = space.Sample(rng);
    point[0] = 0.2 + 0.02 * rng.Uniform();
    point[1] = 0.02 * rng.Uniform();
    add(point);
  }
  return history;
}

TEST(CrowdingTest, CountsTrialsAsTheyStandForTheSpace) {
  const Space space = Reals(3);
  const gp::InputLayout layout(space);
  const Crowding even(layout, Spread(layout, {64, 0, 1}, 99));
  EXPECT_NEAR(static_cast<double>(even.even()), 64, 8);
  const auto none = [](const Point&) { return 0.0; };
  const History history = CrowdedHistory(space, none, 16, 100);
  const Crowding crowded(layout, InputsOf(layout, history));
  EXPECT_GE(crowded.even(), 10);
  EXPECT_LE(crowded.even(), 40);
  // Of those that stand for the most, nearly all are among the 16.
  const std::vector<Eigen::Index> largest = crowded.Largest(12);
  ASSERT_EQ(largest.size(), 12u);
  EXPECT_GE(std::count_if(largest.begin(), largest.end(), [](auto i) { return i < 16; }), 9);
  EXPECT_TRUE(std::is_sorted(largest.begin(), largest.end()));
  Rng rng(3);
  int outside = 0, all = 0;
  for (int i = 0; i < 50; ++i) {
    const auto rows = crowded.Sample(10, rng);
    EXPECT_LE(rows.size(), 10u);
    EXPECT_EQ(std::adjacent_find(rows.begin(), rows.end()), rows.end());
    for (const Eigen::Index row : rows) outside += row < 16 ? 1 : 0;
    all += static_cast<int>(rows.size());
  }
  EXPECT_GT(outside, all / 2);  // though they are 16 of 116
}

TEST(CrowdingTest, TakesCategoriesAndASingleTrial) {
  const Space space = Make({Categorical("c", {"a", "b", "d"}), Double("x", {0, 1})});
  const gp::InputLayout layout(space);
  // Two of three categories were tried: each stands for its own, and for half of the third.
  const gp::Inputs two = layout.From({{0, 0.5}, {1, 0.5}});
  EXPECT_EQ(Crowding(layout, two).even(), 2);
  EXPECT_EQ(Crowding(layout, two).Largest(5).size(), 2u);
  Rng rng(1);
  const Crowding one(layout, layout.From({{0, 0.5}}));
  EXPECT_EQ(one.even(), 1);
  EXPECT_EQ(one.Sample(9, rng), std::vector<Eigen::Index>{0});
}

// x2 counts only where x1 does, which is seldom where the trials are. The true total shares, by
// hand, of 3 u + 6 v w: V = 9/12 + 36 (1/9 - 1/16), the total of v or w (1/3)(36/12), of u 9/12.
double Product(const Point& x) { return 3 * x[0] + 6 * x[1] * x[2]; }
const double kVariance = 9.0 / 12 + 36 * (1.0 / 9 - 1.0 / 16);
const double kTrueTotals[] = {9.0 / 12 / kVariance, 1 / kVariance, 1 / kVariance, 0};

int Covered(const std::vector<SobolIndex>& found) {
  int covered = 0;
  for (size_t j = 0; j < 4; ++j) {
    const Estimate& total = found[j].total;
    covered += total.low - 0.005 <= kTrueTotals[j] && kTrueTotals[j] <= total.high + 0.005 ? 1 : 0;
  }
  return covered;
}

double WidthOfTotals(const std::vector<SobolIndex>& found) {
  double width = 0;
  for (const SobolIndex& one : found) width += one.total.high - one.total.low;
  return width;
}

class CrowdedImportanceTest : public testing::TestWithParam<int> {};

TEST_P(CrowdedImportanceTest, BandsHoldTheTruthAndAreWiderThanThoseOfOneFit) {
  const FittedHistory history(CrowdedHistory(Reals(4), Product, 14, GetParam()));
  std::vector<SobolIndex> bands;
  for (const ParameterImportance& one : Importances(history)) {
    bands.push_back(one.index);
    if (bands.size() == 3) {
      EXPECT_NE(one.verdict, Verdict::kDoesNotMatter);
    }
  }
  EXPECT_EQ(Covered(bands), 4);
  // The same with the parameters that are the most probable of all trials.
  const PosteriorFunctions fixed(history.layout(), history.surrogate(),
                                 {.count = 32, .most_for_theta = 0}, Rng(2));
  const std::vector<SobolIndex> of_one_fit = SobolIndices(
      history.layout(), [&](const gp::Inputs& points) { return fixed.Losses(points); }, 512);
  EXPECT_GT(WidthOfTotals(bands), 1.1 * WidthOfTotals(of_one_fit))
      << WidthOfTotals(bands) << " " << WidthOfTotals(of_one_fit);
}

// More than a θ is drawn for, too: then by those that stand for most of the space.
INSTANTIATE_TEST_SUITE_P(Crowds, CrowdedImportanceTest, testing::Values(60, 100, 300));

// As of networks that are trained: where x0 is right nothing else matters, elsewhere x1 and x2
// decide how bad it is. No stationary process is like that.
double Training(const Point& x) {
  if (x[0] < 0.4) return 0.01 * x[0];
  return 0.2 + 0.3 * x[0] + 0.5 * x[1] * x[1] + (x[2] > 0.6 ? 0.4 : 0) + 0.2 * x[3];
}

// Of a search that stays where x0 is right, with another tried now and then.
History SearchOfTraining(uint64_t seed) {
  const Space space = Reals(4);
  History history(space);
  Rng rng(seed);
  for (int i = 0; i < 120; ++i) {
    Point point = space.Sample(rng);
    if (i >= 6 && i % 12 != 0) point[0] *= 0.3;
    history.Add(point, {.state = TrialState::kCompleted, .loss = Training(point)});
  }
  return history;
}

TEST(SearchImportanceTest, BandsHoldWhatNoStationaryProcessExplains) {
  const gp::InputLayout layout(Reals(4));
  const auto truth = SobolIndices(layout, Exactly(layout, Training), 1 << 15);
  constexpr int kTimes = 10;
  int covered = 0;
  double width = 0;
  for (uint64_t seed = 1; seed <= kTimes; ++seed) {
    const auto found = Importances(FittedHistory(SearchOfTraining(seed)));
    for (size_t j = 0; j < 4; ++j) {
      const Estimate& total = found[j].index.total;
      const double share = truth[j].total.value;
      covered += total.low - 0.005 <= share && share <= total.high + 0.005 ? 1 : 0;
      width += (total.high - total.low) / (4 * kTimes);
    }
  }
  EXPECT_GE(covered, 33);  // of 40; samples of e, which a stationary process needs, hold 27
  EXPECT_LT(width, 0.25);
}

// In twenty dimensions 256 points miss the variance by some per cent, whatever the draws say.
TEST(SobolIndicesTest, BandsHoldWhatFewPointsMiss) {
  const gp::InputLayout layout(Reals(20));
  const auto loss = [](const Point& x) {
    double sum = x[0] * x[1];
    for (size_t j = 0; j < x.size(); ++j) sum += std::sin(3 * x[j]) / static_cast<double>(1 + j);
    return sum;
  };
  const auto few = SobolIndices(layout, Exactly(layout, loss), 256);
  const auto many = SobolIndices(layout, Exactly(layout, loss), 1 << 15);
  int total = 0, first = 0;
  for (size_t j = 0; j < 20; ++j) {
    const double t = many[j].total.value, f = many[j].first.value;
    total += few[j].total.low <= t && t <= few[j].total.high ? 1 : 0;
    first += few[j].first.low <= f && f <= few[j].first.high ? 1 : 0;
    EXPECT_LT(many[j].total.high - many[j].total.low, 0.02);
  }
  EXPECT_GE(total, 17);
  EXPECT_GE(first, 17);
  EXPECT_GT(few[0].total.high - few[0].total.low, 0.01);
}

TEST(ImportanceTest, AShareThatMayBeNegligibleMayBeNone) {
  const auto loss = [](const Point& x) { return 3 * x[0] + 2 * x[1]; };
  for (const auto& one : Importances(FittedHistory(RandomHistory(Reals(4), 40, loss)))) {
    for (const Estimate& share : {one.index.total, one.index.first}) {
      EXPECT_TRUE(share.low == 0 || share.low >= kNegligible) << share.low;
      EXPECT_LE(share.low, share.value);
    }
  }
}

}  // namespace
}  // namespace shirabe::suggestion::analysis
