// How far the best result may be from the optimum, as a Gaussian process sees it.
#include "suggestion/gp/regret_bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "suggestion/algorithm.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using RegretObjective = std::function<double(const Point&)>;  // NaN = the trial fails

Space UnitCube(int dimensions) {
  std::vector<v1::ParameterSpec> parameters;
  for (int i = 0; i < dimensions; ++i) parameters.push_back(Double("x" + std::to_string(i), {}));
  return Make(parameters);
}

double RegretBowl(const Point& x) {
  double sum = 0;
  for (const double u : x) sum += (u - 0.3) * (u - 0.3);
  return sum;
}

// Grows `history` by what the algorithm proposes.
void Grow(const RegretObjective& objective, int64_t trials, History& history) {
  const auto algorithm = CreateAlgorithm("gp", {.space = history.space()}).value();
  while (history.size() < trials) {
    const Proposal proposal = algorithm->Propose(history, 1, Rng(1)).value();
    ASSERT_FALSE(proposal.suggestions.empty());
    const double loss = objective(proposal.suggestions[0].point);
    history.Add(proposal.suggestions[0].point,
                {.state = std::isnan(loss) ? TrialState::kInfeasible : TrialState::kCompleted,
                 .loss = loss});
    history.set_memo(proposal.memo);
  }
}

double BestLoss(const History& history) {
  double best = HUGE_VAL;
  for (int64_t i = 0; i < history.size(); ++i) {
    if (history.trial(i).state == TrialState::kCompleted) {
      best = std::min(best, history.trial(i).loss);
    }
  }
  return best;
}

std::optional<double> Bound(const History& history, const std::string& algorithm = "gp") {
  const auto made = CreateAlgorithm(algorithm, {.space = history.space()}).value();
  return made->BoundRegret(history, Rng(1)).value();
}

TEST(RegretBound, FallsAsTheSearchConvergesAndHoldsAllTheWay) {
  History history(UnitCube(2));
  double at_ten = 0;
  for (const int64_t trials : {10, 15, 20, 30}) {
    Grow(RegretBowl, trials, history);
    const auto bound = Bound(history);
    ASSERT_TRUE(bound.has_value());
    EXPECT_GE(*bound, BestLoss(history)) << "the least loss there is, is 0; " << trials;
    if (trials == 10) at_ten = *bound;
    if (trials == 30) {
      EXPECT_LT(*bound, at_ten / 10);
    }
  }
}

TEST(RegretBound, IsThatOfTheSameHistoryAgain) {
  History history(UnitCube(3));
  Grow(RegretBowl, 12, history);
  const auto first = Bound(history);
  EXPECT_EQ(first, Bound(history));
  history.set_memo("bayesianoptimization\n" + history.memo());
  EXPECT_EQ(first, Bound(history, "auto")) << "which asks the one that it chose";
}

TEST(RegretBound, IsNotKnownOfLittle) {
  History history(UnitCube(2));
  EXPECT_EQ(Bound(history), std::nullopt);
  for (const double x : {0.1, 0.5}) {
    history.Add({x, x}, {.state = TrialState::kCompleted, .loss = x});
  }
  EXPECT_EQ(Bound(history), std::nullopt);
  History flat(UnitCube(2));
  for (const double x : {0.1, 0.3, 0.5, 0.7}) {
    flat.Add({x, x}, {.state = TrialState::kCompleted, .loss = 1});
  }
  EXPECT_EQ(Bound(flat), std::nullopt) << "nothing differs";
  EXPECT_EQ(Bound(history, "random"), std::nullopt) << "it has no model";
}

TEST(RegretBound, FallsThoughAPartOfTheSpaceNeverGivesAResult) {
  const RegretObjective half = [](const Point& x) {
    return x[0] > 0.7 ? std::nan("") : RegretBowl(x);
  };
  History history(UnitCube(2));
  Grow(half, 12, history);
  const auto early = Bound(history);
  Grow(half, 40, history);
  const auto late = Bound(history);
  ASSERT_TRUE(early && late);
  EXPECT_LT(*late, *early / 3);
}

TEST(RegretBound, IsOfferedByAlgorithmsWithAModel) {
  const auto offers = [](const char* name, const Problem& problem) {
    const auto* info = Registry<AlgorithmInfo>::Get().Find(name);
    return info->bounds_regret != nullptr && info->bounds_regret(problem);
  };
  const Problem problem{.space = UnitCube(2), .max_trials = 50, .parallel = 4};
  EXPECT_TRUE(offers("bayesianoptimization", problem));
  EXPECT_TRUE(offers("auto", problem));
  EXPECT_FALSE(offers("auto", {.space = UnitCube(2), .max_trials = 4, .parallel = 4}));
  EXPECT_FALSE(offers("tpe", problem));
  EXPECT_FALSE(offers("random", problem));
}

}  // namespace
}  // namespace shirabe::suggestion
