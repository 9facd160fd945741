// Where the best is expected: the densities, what is drawn, and what algorithms make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "suggestion/algorithm.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kPriors[] = R"({"priors": {
    "lr": {"center": 0.001, "confidence": "high"},
    "opt": {"value": "adam"},
    "n": {"center": 20, "confidence": "low"}}})";

Space Believed(const std::string& rules = kPriors) {
  return Make({Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM),
               Categorical("opt", {"sgd", "adam", "lion"}), Int("n", {1, 20}), Double("x", {0, 1})},
              rules);
}

TEST(SpacePriorsTest, ADensityIsOneInAllAndGreatestWhereItIsExpected) {
  const Space space = Believed();
  const SpacePriors& priors = *space.priors();
  EXPECT_TRUE(priors.Has(0) && priors.Has(1) && priors.Has(2));
  EXPECT_FALSE(priors.Has(3));
  constexpr int kSteps = 10'000;
  for (const int axis : {0, 2}) {
    double mass = 0;
    for (int i = 0; i < kSteps; ++i) {
      const double x = (i + 0.5) / kSteps;
      mass += std::exp(priors.LogDensity(axis, x)) / kSteps;
      EXPECT_LE(priors.LogDensity(axis, x), priors.LogDensity(axis, priors.center(axis)));
      const double h = 1e-6;
      EXPECT_NEAR(priors.Slope(axis, x),
                  (priors.LogDensity(axis, x + h) - priors.LogDensity(axis, x - h)) / (2 * h),
                  1e-4);
    }
    EXPECT_NEAR(mass, 1, 1e-6);
  }
  EXPECT_EQ(space.axis(0).Decode(priors.center(0)).number(), 0.001);
  EXPECT_EQ(priors.center(2), space.axis(2).Coordinate(19));
  double mass = 0;
  for (int k = 0; k < 3; ++k) mass += std::exp(priors.LogDensity(1, k)) / 3;
  EXPECT_NEAR(mass, 1, 1e-12);
  EXPECT_GT(priors.LogDensity(1, 1), 0);
  EXPECT_EQ(priors.LogDensity(1, 0), priors.LogDensity(1, 2));
}

TEST(SpacePriorsTest, QuantilesFollowTheDensity) {
  const Space space = Believed();
  const SpacePriors& priors = *space.priors();
  constexpr int kSteps = 20'000;
  double below = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double x = (i + 0.5) / kSteps;
    below += std::exp(priors.LogDensity(0, x)) / kSteps;
    EXPECT_NEAR(priors.Quantile(0, below), x + 0.5 / kSteps, 1e-4);
  }
  const double expected = std::exp(priors.LogDensity(1, 1)) / 3;
  EXPECT_EQ(priors.Quantile(1, 0), 0);
  EXPECT_EQ(priors.Quantile(1, 0.5), 1);
  EXPECT_EQ(priors.Quantile(1, (1 - expected) / 2 + 1e-9), 1);
  EXPECT_EQ(priors.Quantile(1, (1 - expected) / 2 - 1e-9), 0);
  EXPECT_EQ(priors.Quantile(1, 1), 2);
}

TEST(SpacePriorsTest, WhatIsDrawnFollowsThemAndTheRestIsEven) {
  const Space space = Believed();
  const double share = std::exp(space.priors()->LogDensity(1, 1)) / 3;
  Rng rng(1);
  constexpr int kDraws = 4000;
  double adam = 0, near = 0, x = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Point point = space.Sample(rng);
    adam += point[1] == 1 ? 1.0 / kDraws : 0;
    near += std::abs(point[0] - space.priors()->center(0)) < 0.125 ? 1.0 / kDraws : 0;
    x += point[3] / kDraws;
  }
  EXPECT_NEAR(adam, share, 0.04);
  EXPECT_NEAR(near, 0.9 * 0.6827 + 0.1 * 0.25, 0.04);  // within one deviation
  EXPECT_NEAR(x, 0.5, 0.03);
}

TEST(SpacePriorsTest, WhatDoesNotExistIsNotExpectedAnywhere) {
  const Space space = Believed(R"({"priors": {"n": {"center": 1}},
                                   "conditions": [{"parameter": "n", "when": {"opt": "sgd"}}]})");
  EXPECT_EQ(space.LogPrior(space.Canonical({0.5, 1, 0, 0.5})), 0);
  EXPECT_GT(space.LogPrior(space.Canonical({0.5, 0, 0, 0.5})), 0);
  EXPECT_LT(space.LogPrior(space.Canonical({0.5, 0, 1, 0.5})), 0);
}

TEST(SpacePriorsTest, SaysWhatIsWrongWhere) {
  const struct {
    const char* priors;
    const char* field;
    const char* words;
  } cases[] = {
      {R"({"lrate": {"center": 1}})",
       "spec.shirabe.space.priors: ", "\"lrate\" is not a parameter"},
      {R"({"lr": 0.1})", "spec.shirabe.space.priors.lr: ", "give {center: "},
      {R"({"lr": {"value": 0.1}})", "spec.shirabe.space.priors.lr: ", "\"value\" is not a field"},
      {R"({"opt": {"center": "adam"}})", "spec.shirabe.space.priors.opt: ", "it has value and"},
      {R"({"opt": {"value": "rmsprop"}})", "spec.shirabe.space.priors.opt: ", "not in its list"},
      {R"({"lr": {"center": 7}})", "spec.shirabe.space.priors.lr: center: ", "7"},
      {R"({"lr": {"center": [1]}})", "spec.shirabe.space.priors.lr: center: ", "number"},
      {R"({"n": {"center": 2.5}})", "spec.shirabe.space.priors.n: center: ", "2.5"},
      {R"({"n": {"center": 2, "confidence": "sure"}})",
       "spec.shirabe.space.priors.n: ", "confidence is \"sure\": give low, medium or high"},
      {R"({"n": {"center": 2, "confidence": 3}})", "spec.shirabe.space.priors.n: ", "is \"3\""},
  };
  for (const auto& [priors, field, words] : cases) {
    SCOPED_TRACE(priors);
    const auto made = Believed().WithRules(RulesOf(std::string("{\"priors\": ") + priors + "}"));
    ASSERT_TRUE(absl::IsInvalidArgument(made.status()));
    EXPECT_THAT(std::string(made.status().message()), StartsWith(field));
    EXPECT_THAT(made.status().message(), HasSubstr(words));
  }
}

// Minimises the distance to `best` in three parameters, of which each is expected at 0.2.
double BestOf(const std::string& algorithm, const Space& space, double best, int trials) {
  const auto search = CreateAlgorithm(algorithm, {.space = space, .settings = {}}).value();
  History history(space);
  double least = 1e9;
  while (history.size() < trials) {
    const Proposal proposal = search->Propose(history, 1, Rng(3)).value();
    const Point& point = proposal.suggestions.at(0).point;
    double loss = 0;
    for (const double x : point) loss += (x - best) * (x - best);
    least = std::min(least, loss);
    history.Add(point, {.state = TrialState::kCompleted, .loss = loss});
    history.set_memo(proposal.memo);
  }
  return least;
}

TEST(SpacePriorsTest, AGoodPriorHelpsAtOnceAndAWrongOneIsOvercome) {
  const std::vector<v1::ParameterSpec> axes = {Double("a", {0, 1}), Double("b", {0, 1}),
                                               Double("c", {0, 1})};
  const Space even = Make(axes);
  const Space believed = Make(axes, R"({"priors": {"a": {"center": 0.2, "confidence": "high"},
      "b": {"center": 0.2, "confidence": "high"}, "c": {"center": 0.2, "confidence": "high"}}})");
  for (const char* algorithm : {"bayesianoptimization", "tpe", "multivariate-tpe"}) {
    SCOPED_TRACE(algorithm);
    EXPECT_EQ(BestOf(algorithm, believed, 0.2, 1), 0);  // the first is the center
    EXPECT_LT(BestOf(algorithm, believed, 0.25, 8), BestOf(algorithm, even, 0.25, 8));
    EXPECT_LT(BestOf(algorithm, believed, 0.8, 60), 0.05);
  }
}

}  // namespace
}  // namespace shirabe::suggestion
