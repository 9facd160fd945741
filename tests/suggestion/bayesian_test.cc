// What is expected of Bayesian optimisation as a whole; the contract suite checks the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <set>

#include "suggestion/algorithm.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Objective = std::function<double(const Point&)>;  // NaN = the trial fails

std::unique_ptr<Algorithm> BuildBayesian(const Space& space, const Settings& settings = {}) {
  return CreateAlgorithm("gp", {.space = space, .settings = settings}).value();
}

struct Run {
  int trials = 40;
  int at_once = 1;
  uint64_t seed = 1;
  bool memo = true;
};

History Optimize(const Space& space, const Objective& objective, const Run& run,
                 const Settings& settings = {}) {
  const auto algorithm = BuildBayesian(space, settings);
  History history(space);
  while (history.size() < run.trials) {
    const Proposal proposal = algorithm->Propose(history, run.at_once, Rng(run.seed)).value();
    if (proposal.suggestions.empty()) break;
    for (const Suggestion& suggestion : proposal.suggestions) {
      const double loss = objective(suggestion.point);
      history.Add(suggestion.point,
                  {.state = std::isnan(loss) ? TrialState::kInfeasible : TrialState::kCompleted,
                   .loss = loss});
    }
    if (run.memo) history.set_memo(proposal.memo);
  }
  return history;
}

double Best(const History& history) {
  double best = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < history.size(); ++i) {
    if (history.trial(i).state == TrialState::kCompleted) {
      best = std::min(best, history.trial(i).loss);
    }
  }
  return best;
}

double Bowl(const Point& point) {
  double sum = 0;
  for (size_t i = 0; i < point.size(); ++i) {
    sum += std::pow(point[i] - 0.3 - 0.1 * static_cast<double>(i), 2);
  }
  return sum;
}

Space Cube(int dimensions) {
  std::vector<v1::ParameterSpec> parameters;
  for (int i = 0; i < dimensions; ++i) parameters.push_back(Double("x" + std::to_string(i), {}));
  return Make(parameters);
}

TEST(Bayesian, ConvergesOnASmoothFunction) {
  EXPECT_LT(Best(Optimize(Cube(3), Bowl, {.trials = 40})), 1e-5);
  // As well without a memo, whatever is thought promising, and with half of it climbing.
  EXPECT_LT(Best(Optimize(Cube(3), Bowl, {.trials = 40, .memo = false})), 1e-5);
  EXPECT_LT(Best(Optimize(Cube(3), Bowl, {.trials = 40}, {{"acq_func", "PI"}})), 1e-2);
  EXPECT_LT(Best(Optimize(Cube(3), Bowl, {.trials = 40}, {{"acq_func", "LCB"}})), 1e-2);
  EXPECT_LT(Best(Optimize(Cube(3), Bowl, {.trials = 40}, {{"acq_optimizer", "sampling"}})), 1e-2);
}

// Two of five of the first points are penalised so that beside them nothing else can be told apart.
TEST(Bayesian, ResultsThatAreFarWorseThanOthersDoNotHideThem) {
  const Objective penalised = [](const Point& point) {
    return point[0] > 0.6 ? 1e25 * (1 + point[1]) : Bowl(point);
  };
  for (const bool memo : {true, false}) {
    EXPECT_LT(Best(Optimize(Cube(3), penalised, {.trials = 40, .memo = memo})), 1e-4);
  }
}

TEST(Bayesian, FindsTheBestOfAMixedSpace) {
  const Space space = Make({Double("lr", {1e-5, 1}, v1::LOG_UNIFORM), Int("n", {1, 200}),
                            Discrete("bs", {16, 32, 64, 128}),
                            Categorical("opt", {"sgd", "adam", "lion", "rmsprop"})});
  const Objective objective = [](const Point& p) {
    const double shift = p[3] == 2 ? 0 : 0.3 + 0.1 * p[3];
    return shift + std::pow(p[0] - 0.6, 2) + std::pow(p[1] - 0.25, 2) + 0.2 * std::abs(p[2] - 0.4);
  };
  const double best = objective({0.6, 0.25, space.axis(2).Coordinate(1), 2});
  EXPECT_LT(Best(Optimize(space, objective, {.trials = 50})) - best, 1e-3);
}

// The unconstrained best is where everything fails; the best that can be run is far from there.
TEST(Bayesian, LearnsWhereTrialsFail) {
  const Objective objective = [](const Point& p) {
    if (std::hypot(p[0] - 0.8, p[1] - 0.8) < 0.3) return std::nan("");
    const double trap = std::hypot(p[0] - 0.8, p[1] - 0.8);
    return std::min(trap, 0.1 + 0.8 * std::hypot(p[0] - 0.2, p[1] - 0.3));
  };
  const History history = Optimize(Cube(2), objective, {.trials = 60});
  int failed = 0;
  for (int64_t i = 30; i < 60; ++i) {
    failed += history.trial(i).state == TrialState::kInfeasible ? 1 : 0;
  }
  EXPECT_LT(Best(history), 0.12);
  EXPECT_LT(failed, 10);
}

// 64 at once, and 64 again while those run: no two the same, and no heap of them in one place.
TEST(Bayesian, ABatchDoesNotCollapse) {
  const Space space = Cube(4);
  History history = Optimize(space, Bowl, {.trials = 6});
  const auto algorithm = BuildBayesian(space);
  for (int round = 0; round < 2; ++round) {
    const Proposal proposal = algorithm->Propose(history, 64, Rng(1)).value();
    ASSERT_EQ(proposal.suggestions.size(), 64u);
    for (const Suggestion& suggestion : proposal.suggestions) history.Add(suggestion.point, {});
    history.set_memo(proposal.memo);
  }
  int close = 0;
  for (int64_t i = 6; i < history.size(); ++i) {
    for (int64_t j = 6; j < i; ++j) {
      double distance = 0;
      for (int axis = 0; axis < 4; ++axis) {
        distance =
            std::max(distance, std::abs(history.coordinate(i, axis) - history.coordinate(j, axis)));
      }
      close += distance < 1e-3 ? 1 : 0;
    }
  }
  EXPECT_LE(close, 5);
}

TEST(Bayesian, BatchesGetThereTooWhileTrialsRun) {
  EXPECT_LT(Best(Optimize(Cube(3), Bowl, {.trials = 80, .at_once = 8})), 1e-3);
}

TEST(Bayesian, TheSameHistoryGivesTheSameBits) {
  const History one = Optimize(Cube(5), Bowl, {.trials = 30, .seed = 7});
  const History other = Optimize(Cube(5), Bowl, {.trials = 30, .seed = 7});
  for (int64_t i = 0; i < 30; ++i) EXPECT_EQ(one.point(i), other.point(i));
  EXPECT_NE(one.point(29), Optimize(Cube(5), Bowl, {.trials = 30, .seed = 8}).point(29));
}

TEST(Bayesian, HasNothingToLearnFromEqualOrMissingResults) {
  const Objective constant = [](const Point&) { return 0.1; };
  const Objective nothing = [](const Point&) { return std::nan(""); };
  for (const Objective& objective : {constant, nothing}) {
    const History history = Optimize(Cube(2), objective, {.trials = 30});
    EXPECT_EQ(history.distinct(), 30);
  }
}

TEST(Bayesian, EndsAtTheEdgesOfRanges) {
  const Space space = Make({Double("lr", {1e-300, 1e300}, v1::LOG_UNIFORM), Int("n", {0, 1023}),
                            Double("s", {0.1, 0.9, 0.1})});
  const Objective objective = [](const Point& p) { return -p[0] + p[1] - p[2]; };
  const History history = Optimize(space, objective, {.trials = 40});
  int64_t best = 0;
  for (int64_t i = 0; i < history.size(); ++i) {
    if (history.trial(i).loss < history.trial(best).loss) best = i;
  }
  const auto values = space.Decode(history.point(best));
  EXPECT_EQ(values[0].number(), 1e300);
  EXPECT_EQ(values[1].integer(), 0);
  EXPECT_EQ(values[2].number(), 0.9);
}

TEST(Bayesian, BeginsWithTheBestOfEarlierExperiments) {
  History history(Cube(2));
  // The second source's losses have another scale: only their order counts.
  history.SetPrior({{{0.5, 0.5}, 3, 0}, {{0.25, 0.5}, 1, 0}, {{0.75, 0.5}, 1000, 1}});
  const auto algorithm = BuildBayesian(history.space());
  const Proposal proposal = algorithm->Propose(history, 5, Rng(1)).value();
  ASSERT_EQ(proposal.suggestions.size(), 5u);
  EXPECT_EQ(proposal.suggestions[0].point, (Point{0.25, 0.5}));
  EXPECT_EQ(proposal.suggestions[2].point, (Point{0.75, 0.5}));
  EXPECT_EQ(proposal.suggestions[4].point, (Point{0.5, 0.5}));
  EXPECT_THAT(proposal.suggestions[2].explanation, HasSubstr("earlier experiment"));
  EXPECT_THAT(proposal.suggestions[1].explanation, HasSubstr("spread evenly"));
}

TEST(Bayesian, SaysWhy) {
  const Space space = Cube(2);
  const History history = Optimize(space, Bowl, {.trials = 6});
  const auto why = [&](bool maximize) {
    const auto algorithm = CreateAlgorithm("gp", {.space = space, .maximize = maximize}).value();
    return algorithm->Propose(history, 1, Rng(3)).value().suggestions[0].explanation;
  };
  for (const bool maximize : {false, true}) {
    double mean = 0, low = 0, high = 0, known = 0;
    int number = 0;
    ASSERT_EQ(
        std::sscanf(why(maximize).c_str(), "predicts %lf (%lf to %lf), where trial %d has %lf",
                    &mean, &low, &high, &number, &known),
        5)
        << why(maximize);
    EXPECT_LT(low, mean);
    EXPECT_LT(mean, high);
    const double loss = history.trial(number - 1).loss;
    EXPECT_NEAR(known, maximize ? -loss : loss, 1e-3 * std::abs(loss));
  }
}

// Katib's other models are accepted, and it is told that they are not there.
TEST(Bayesian, SaysWhomItAnswersFor) {
  const Space space = Cube(2);
  const auto told = [&](const Settings& settings) {
    return BuildBayesian(space, settings)->Propose(History(space), 1, Rng(1)).value().algorithm;
  };
  EXPECT_EQ(told({}), "");
  EXPECT_EQ(told({{"base_estimator", "GP"}}), "");
  EXPECT_EQ(told({{"base_estimator", "RF"}}), "a Gaussian process answers for base_estimator RF");
}

// ---- what it recommends -------------------------------------------------------------------------

std::optional<Recommendation> Recommend(const History& history) {
  return BuildBayesian(history.space())->Recommend(history).value();
}

// Forty points evenly in a bowl with its floor at 0.3, each result 0.3 too high or too low; and one
// at 0.81 that was lucky by 1.6.
History WithALuckyTrial() {
  History history(Cube(1));
  for (int i = 0; i < 40; ++i) {
    const double x = (i + 0.5) / 40, noise = i % 2 == 0 ? -0.3 : 0.3;
    const double loss = i == 32 ? -0.6 : 4 * (x - 0.3) * (x - 0.3) + noise;
    history.Add({x}, {.state = TrialState::kCompleted, .loss = loss});
  }
  return history;
}

TEST(BayesianRecommends, TheBestInTheMeanWhereTheBestResultWasLuck) {
  const History history = WithALuckyTrial();
  const auto found = Recommend(history);
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(history.point(found->trial)[0], 0.3, 0.05);
  EXPECT_NEAR(found->loss, 0, 0.3);
  EXPECT_GT(found->deviation, 0);
  EXPECT_LT(found->deviation, 0.5);
  EXPECT_THAT(found->reason, HasSubstr("-0.6 of trial 33, was luck"));
  // The same with the other sign, in the words of who maximises.
  const auto maximizer = CreateAlgorithm("gp", {.space = Cube(1), .maximize = true}).value();
  EXPECT_THAT(maximizer->Recommend(history).value()->reason, HasSubstr(" 0.6 of trial 33, was"));
}

TEST(BayesianRecommends, NothingElseWhereResultsAreExact) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_FALSE(Recommend(Optimize(Cube(3), Bowl, {.trials = 30, .seed = seed})).has_value());
  }
}

TEST(BayesianRecommends, NothingWhereThereIsNothingToLearnFrom) {
  const auto nothing = [](double loss, int trials) {
    return Recommend(Optimize(Cube(2), [=](const Point&) { return loss; }, {.trials = trials}));
  };
  EXPECT_FALSE(Recommend(History(Cube(2))).has_value());
  EXPECT_FALSE(nothing(1, 1).has_value());
  EXPECT_FALSE(nothing(1, 12).has_value());             // all equal
  EXPECT_FALSE(nothing(std::nan(""), 12).has_value());  // all failed
}

TEST(BayesianRecommends, AsAutoDoes) {
  History history = WithALuckyTrial();
  history.set_memo(BuildBayesian(Cube(1))->Propose(history, 1, Rng(1)).value().memo);
  const auto own = Recommend(history);
  ASSERT_TRUE(own.has_value());
  const auto automatic = CreateAlgorithm("auto", {.space = Cube(1)}).value();
  history.set_memo("bayesianoptimization\n" + history.memo());
  const auto its = automatic->Recommend(history).value();
  ASSERT_TRUE(its.has_value());
  EXPECT_EQ(its->trial, own->trial);
  EXPECT_EQ(its->loss, own->loss);
}

TEST(Auto, SaysWhatItChoseAndGoesOnWithIt) {
  const Space space = Cube(2);
  const auto choose = [](const Space& of, int64_t trials, int parallel) {
    const auto algorithm =
        CreateAlgorithm("auto", {.space = of, .max_trials = trials, .parallel = parallel}).value();
    return algorithm->Propose(History(of), 1, Rng(1)).value().algorithm;
  };
  EXPECT_THAT(choose(space, 100, 4), HasSubstr("bayesianoptimization ("));
  EXPECT_THAT(choose(space, 16, 16), HasSubstr("sobol (all 16 trials may run at once"));
  // Its points are those of the one it chose, memo and all.
  const auto automatic = CreateAlgorithm("auto", {.space = space}).value();
  const auto chosen = BuildBayesian(space);
  History history = Optimize(space, Bowl, {.trials = 12, .memo = false});
  History same = history;
  for (int i = 0; i < 3; ++i) {
    const Proposal one = automatic->Propose(history, 1, Rng(5)).value();
    const Proposal other = chosen->Propose(same, 1, Rng(5)).value();
    ASSERT_EQ(one.suggestions[0].point, other.suggestions[0].point);
    const TrialSummary view{.state = TrialState::kCompleted,
                            .loss = Bowl(one.suggestions[0].point)};
    history.Add(one.suggestions[0].point, view);
    same.Add(one.suggestions[0].point, view);
    history.set_memo(one.memo);
    same.set_memo(other.memo);
  }
}

}  // namespace
}  // namespace shirabe::suggestion
