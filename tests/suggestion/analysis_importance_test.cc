#include "suggestion/analysis/importance.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "tests/suggestion/analysis_data.h"

namespace shirabe::suggestion::analysis {
namespace {

constexpr Eigen::Index kManyPoints = 1 << 14;

void ExpectIndex(const SobolIndex& index, double total, double first) {
  EXPECT_NEAR(index.total.value, total, 0.01);
  EXPECT_NEAR(index.first.value, first, 0.01);
}

TEST(SobolIndicesTest, AreThoseOfIshigami) {
  const gp::InputLayout layout(Reals(3));
  const auto found = SobolIndices(layout, Exactly(layout, Ishigami), kManyPoints);
  ASSERT_EQ(found.size(), 3u);
  ExpectIndex(found[0], 0.5576, 0.3139);
  ExpectIndex(found[1], 0.4424, 0.4424);
  ExpectIndex(found[2], 0.2437, 0);  // only together with the first
}

TEST(SobolIndicesTest, AreThoseOfTheGFunction) {
  const std::vector<double> a = {0, 0.5, 3, 9, 99};
  const gp::InputLayout layout(Reals(5));
  const auto loss = [&](const Point& point) { return GFunction(point, a); };
  const auto found = SobolIndices(layout, Exactly(layout, loss), kManyPoints);
  double all = 1;  // Π (1 + V_k)
  for (const double weight : a) all *= 1 + 1 / (3 * (1 + weight) * (1 + weight));
  for (size_t j = 0; j < a.size(); ++j) {
    const double own = 1 / (3 * (1 + a[j]) * (1 + a[j]));
    ExpectIndex(found[j], own * all / (1 + own) / (all - 1), own / (all - 1));
  }
}

// Of a sum, by hand: variances of an index of three categories, of whole numbers 1 … 4 on a grid,
// and of the position on a logarithmic axis, 2/3, 5/4 and 1/12.
TEST(SobolIndicesTest, TakeCategoriesLevelsAndLogarithmsAsTheyAreSearched) {
  const Space space = Make({Categorical("c", {"a", "b", "d"}), Int("k", {1, 4}),
                            Double("lr", {1e-6, 1}, v1::LOG_UNIFORM), Int("one", {5, 5})});
  const gp::InputLayout layout(space);
  const auto loss = [&](const Point& point) {
    return point[0] + static_cast<double>(space.axis(1).Level(point[1])) + point[2];
  };
  const auto found = SobolIndices(layout, Exactly(layout, loss), kManyPoints);
  const double all = 2.0 / 3 + 5.0 / 4 + 1.0 / 12;
  ExpectIndex(found[0], 2.0 / 3 / all, 2.0 / 3 / all);
  ExpectIndex(found[1], 5.0 / 4 / all, 5.0 / 4 / all);
  ExpectIndex(found[2], 1.0 / 12 / all, 1.0 / 12 / all);
  EXPECT_EQ(found[3].total.value, 0);  // it has one value
}

// x exists with opt a only. By hand, of 1[opt = a] · x: V = 1/6 - 1/16.
TEST(SobolIndicesTest, WhatDoesNotExistMakesNoDifferenceThere) {
  const Space space = Make({Categorical("opt", {"a", "b"}), Double("x", {0, 1})},
                           R"({"conditions": [{"parameter": "x", "when": {"opt": "a"}}]})");
  const gp::InputLayout layout(space);
  const auto loss = [&](const Point& point) {
    EXPECT_EQ(point, space.Canonical(point));
    return point[0] == 0 ? point[1] : 0;
  };
  const auto found = SobolIndices(layout, Exactly(layout, loss), kManyPoints);
  const double all = 1.0 / 6 - 1.0 / 16;
  ExpectIndex(found[0], 1.0 / 12 / all, 1.0 / 16 / all);
  ExpectIndex(found[1], 1.0 / 24 / all, 1.0 / 48 / all);
}

TEST(SobolIndicesTest, AreNoneOfAConstantHoweverLarge) {
  const gp::InputLayout layout(Reals(2));
  const auto found = SobolIndices(layout, Exactly(layout, [](const Point&) { return 1e17; }), 64);
  for (const SobolIndex& index : found) ExpectIndex(index, 0, 0);
}

TEST(SobolIndicesTest, BandsComeFromTheDraws) {
  const gp::InputLayout layout(Reals(2));
  // Draw s is x0 + s x1: its total share of x1 is s² / (1 + s²), from 0 to 16/17.
  const Functions lines = [](const gp::Inputs& inputs) {
    Eigen::MatrixXd values(inputs.rows(), 6);
    values.col(0) = inputs.x.col(0) + inputs.x.col(1);
    for (int s = 0; s < 5; ++s) values.col(s + 1) = inputs.x.col(0) + s * inputs.x.col(1);
    return values;
  };
  const Estimate total = SobolIndices(layout, lines, 4096)[1].total;
  EXPECT_NEAR(total.value, 0.5, 0.01);
  EXPECT_NEAR(total.low, 0, 0.01);  // of five draws the first and the last
  EXPECT_NEAR(total.high, 16.0 / 17, 0.01);
}

double ThreeMatter(const Point& x) {
  return 10 * x[0] + std::sin(6 * x[1]) * 4 + 6 * (x[2] - 0.5) * (x[2] - 0.5);
}

TEST(ImportanceTest, TellsWhatMattersFromRandomTrials) {
  const FittedHistory history(RandomHistory(Reals(6), 100, ThreeMatter));
  ASSERT_EQ(history.basis().too_few, "");
  EXPECT_GT(history.basis().explained, 0.9);
  const auto found = Importances(history);
  // Variances by hand: 100/12, 16 V[sin 6u] and 36 V[(u - 1/2)²] = 36/180.
  const double v0 = 100.0 / 12, v2 = 36.0 / 180;
  const double mean1 = (1 - std::cos(6.0)) / 6, square1 = 0.5 - std::sin(12.0) / 24;
  const double v1 = 16 * (square1 - mean1 * mean1), all = v0 + v1 + v2;
  EXPECT_NEAR(found[0].index.total.value, v0 / all, 0.05);
  EXPECT_NEAR(found[1].index.total.value, v1 / all, 0.05);
  EXPECT_NEAR(found[2].index.total.value, v2 / all, 0.03);
  EXPECT_EQ(found[0].verdict, Verdict::kMatters);
  EXPECT_EQ(found[1].verdict, Verdict::kMatters);
  for (int j = 2; j < 6; ++j) EXPECT_EQ(found[j].verdict, Verdict::kDoesNotMatter) << j;
}

// Whatever unit the results are in, and however large all of them are.
TEST(ImportanceTest, IsTheSameOfScaledAndShiftedResults) {
  const auto of = [](double unit, double offset) {
    const auto loss = [&](const Point& x) { return offset + unit * (x[0] + 0.3 * x[1]); };
    return Importances(FittedHistory(RandomHistory(Reals(3), 25, loss)));
  };
  const auto plain = of(1, 0);
  EXPECT_EQ(plain[0].verdict, Verdict::kMatters);
  for (const auto& [unit, offset] : std::vector<std::pair<double, double>>{
           {1e-300, 0}, {1e-165, 0}, {1e80, 0}, {1e149, 0}, {1, 1e6}, {1, -1e12}, {1e-9, 1e3}}) {
    const auto found = of(unit, offset);
    for (size_t j = 0; j < plain.size(); ++j) {
      SCOPED_TRACE(testing::Message() << unit << " " << offset << " x" << j);
      EXPECT_EQ(found[j].verdict, plain[j].verdict);
      EXPECT_NEAR(found[j].index.total.value, plain[j].index.total.value, 0.01);
      EXPECT_NEAR(found[j].index.total.low, plain[j].index.total.low, 0.02);
      EXPECT_NEAR(found[j].index.total.high, plain[j].index.total.high, 0.02);
    }
  }
}

TEST(ImportanceTest, SaysWhenTrialsAreTooFew) {
  const auto verdicts = [](int trials) {
    const auto steep = [](const Point& x) { return x[0]; };
    const auto found = Importances(FittedHistory(RandomHistory(Reals(2), trials, steep)));
    for (const auto& one : found) {
      EXPECT_LE(one.index.total.low, one.index.total.value);
      EXPECT_LE(one.index.total.value, one.index.total.high);
    }
    return std::vector<Verdict>{found[0].verdict, found[1].verdict};
  };
  const auto nothing = std::vector<Verdict>(2, Verdict::kTooFewTrials);
  EXPECT_EQ(verdicts(4), nothing);
  EXPECT_EQ(verdicts(11), nothing);
  EXPECT_EQ(verdicts(12)[0], Verdict::kMatters);
}

// x1 matters where x0 is large, and only small ones were tried: as a search does that stays where
// the objective is best.
TEST(ImportanceTest, DoesNotSayOfWhatWasNotTriedThatItDoesNotMatter) {
  const auto narrow = [](double width) {
    const Space space = Reals(2);
    History history(space);
    Rng rng(1);
    for (int i = 0; i < 60; ++i) {
      const Point point = {rng.Uniform(), width * rng.Uniform()};
      history.Add(point, {.state = TrialState::kCompleted, .loss = point[0]});
    }
    return Importances(FittedHistory(history))[1].verdict;
  };
  EXPECT_EQ(narrow(1), Verdict::kDoesNotMatter);
  EXPECT_EQ(narrow(0.2), Verdict::kTooFewTrials);
}

TEST(ImportanceTest, SaysNothingOfNoise) {
  Rng noise(3);
  const auto found = Importances(
      FittedHistory(RandomHistory(Reals(4), 60, [&](const Point&) { return noise.Normal(); })));
  for (const auto& one : found) EXPECT_NE(one.verdict, Verdict::kMatters);
}

TEST(ImportanceTest, FindsTheCategoryThatMatters) {
  const Space space = Make({Categorical("opt", {"sgd", "adam", "lion", "rms"}),
                            Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM), Int("seed", {1, 1000})});
  const auto loss = [](const Point& x) { return (x[0] == 2 ? 0.0 : 3.0) + x[1]; };
  const auto found = Importances(FittedHistory(RandomHistory(space, 80, loss)));
  EXPECT_EQ(found[0].verdict, Verdict::kMatters);
  EXPECT_GT(found[0].index.total.value, 0.8);  // 27/16 of 27/16 + 1/12
  EXPECT_LT(found[2].index.total.value, 0.05);
}

// The same figures as Optuna 5.0.0, normalize=False, of the same trials: see bench/importance.
TEST(PedAnovaTest, IsThatOfOptuna) {
  const Space space = Make({Double("x", {0, 1}), Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM),
                            Int("k", {1, 8}), Categorical("c", {"a", "b", "d"})});
  History history(space);
  const auto part = [](double value) { return value - std::floor(value); };
  for (int i = 1; i <= 80; ++i) {
    const double x = part(i * 0.7548776662466927), e = part(i * 0.5698402909980532);
    const auto k = static_cast<uint64_t>(8 * part(i * 0.4301597090019468));
    const double c = std::floor(3 * part(i * 0.3183098861837907));
    const double loss = (x - 0.3) * (x - 0.3) + 0.2 * (e - 0.5) * (e - 0.5) +
                        0.05 * std::abs(static_cast<double>(k) - 3) + 0.05 * c;
    history.Add({x, e, space.axis(2).Coordinate(k), c},
                {.state = TrialState::kCompleted, .loss = loss});
  }
  const PedAnova found = PedAnovaOf(history);
  EXPECT_EQ(found.best, 8);
  EXPECT_NEAR(found.importances[0], 0.005184577961182722, 1e-9);
  EXPECT_NEAR(found.importances[1], 0.01353991617787206, 1e-9);
  EXPECT_NEAR(found.importances[2], 0.010624243482610802, 1e-9);
  EXPECT_NEAR(found.importances[3], 0.0005187492205056451, 1e-9);
}

// What a parameter is where it does not exist says nothing: only trials that have it count.
TEST(PedAnovaTest, OfAConditionalParameterIsThatOfTheTrialsThatHaveIt) {
  const std::vector<v1::ParameterSpec> parameters = {Categorical("opt", {"a", "b"}),
                                                     Double("x", {0, 1})};
  const Space space =
      Make(parameters, R"({"conditions": [{"parameter": "x", "when": {"opt": "a"}}]})");
  History with(space), others(Make(parameters)), without(space);
  for (int i = 0; i < 41; ++i) {
    const TrialSummary trial{.state = TrialState::kCompleted, .loss = i % 20 / 40.0};
    with.Add({0, i / 41.0}, trial);
    others.Add({0, i / 41.0}, trial);
    without.Add(space.Canonical({1, 0}), trial);
  }
  // Worse than all: the best tenth stays the same.
  for (int i = 0; i < 3; ++i) {
    with.Add(space.Canonical({1, 0}), {.state = TrialState::kCompleted, .loss = 9});
  }
  EXPECT_GT(PedAnovaOf(with).importances[1], 0);
  EXPECT_EQ(PedAnovaOf(with).importances[1], PedAnovaOf(others).importances[1]);
  EXPECT_EQ(PedAnovaOf(without).importances[1], 0);
}

TEST(PedAnovaTest, LeavesOutWhatHasNoResultAndTakesEquals) {
  const Space space = Make({Double("x", {0, 1}), Int("one", {3, 3})});
  History history(space);
  const auto add = [&](double x, TrialState state, double loss) {
    history.Add({x, space.axis(1).Coordinate(0)}, {.state = state, .loss = loss});
  };
  for (int i = 0; i < 20; ++i) add(i / 20.0, TrialState::kCompleted, i < 3 ? 0 : 1);
  const PedAnova before = PedAnovaOf(history);
  EXPECT_EQ(before.best, 3);  // the best tenth is two, and the third is as good
  EXPECT_GT(before.importances[0], 0);
  EXPECT_EQ(before.importances[1], 0);
  add(0.9, TrialState::kInfeasible, -100);
  add(0.9, TrialState::kActive, -100);
  add(0.9, TrialState::kCompleted, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(PedAnovaOf(history).importances, before.importances);
}

}  // namespace
}  // namespace shirabe::suggestion::analysis
