// What several objectives and constraints change: which trials are better, which algorithms take
// such problems, and that those that learn find more of a front than random search does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "suggestion/algorithm.h"
#include "suggestion/pareto/hypervolume.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrialSummary Result(std::vector<double> losses, std::vector<double> margins = {}) {
  TrialSummary view{.state = TrialState::kCompleted, .loss = losses[0]};
  view.further_losses.assign(losses.begin() + 1, losses.end());
  view.margins = std::move(margins);
  return view;
}

History HistoryOf(const std::vector<TrialSummary>& views) {
  History history(Make({Double("x", {0, 1})}));
  for (const TrialSummary& view : views) {
    history.Add({static_cast<double>(history.size()) / 100}, view);
  }
  return history;
}

TEST(RankSeveral, FrontAfterFrontTheLonelyOnesFirst) {
  // The first front is (0,4) (1,2) (1.1,1.9) (4,0), the second (2,3), the third (4,4).
  const Ranking ranking =
      RankTrials(HistoryOf({Result({1, 2}), Result({4, 4}), Result({0, 4}), Result({1.1, 1.9}),
                            Result({4, 0}), Result({2, 3})}));
  ASSERT_EQ(ranking.ranked.size(), 6u);
  EXPECT_THAT(std::vector<int64_t>(ranking.ranked.begin(), ranking.ranked.begin() + 2),
              ::testing::UnorderedElementsAre(2, 4));  // the ends
  EXPECT_EQ(ranking.ranked[4], 5);
  EXPECT_EQ(ranking.ranked[5], 1);
}

TEST(RankSeveral, TheScaleOfALossDoesNotMatter) {
  const auto ranked = [](const std::function<double(double)>& scale) {
    std::vector<TrialSummary> views;
    for (int i = 0; i < 30; ++i) {
      views.push_back(Result({std::cos(i * 7.0), scale(std::sin(i * 3.0))}));
    }
    return RankTrials(HistoryOf(views)).ranked;
  };
  EXPECT_EQ(ranked([](double x) { return x; }), ranked([](double x) { return std::exp(40 * x); }));
}

TEST(RankSeveral, WhatLacksALossHasFailed) {
  TrialSummary stopped = Result({0});
  stopped.early_stopped = true;
  const Ranking ranking = RankTrials(HistoryOf({Result({1, 1}),
                                                Result({0, std::nan("")}),
                                                Result({0}),
                                                stopped,
                                                {.state = TrialState::kInfeasible},
                                                TrialSummary{}}));
  EXPECT_THAT(ranking.ranked, ElementsAre(0));
  EXPECT_THAT(ranking.failed, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ranking.pending, ElementsAre(5));
}

TEST(RankConstrained, WhatKeepsAllIsBeforeWhatBreaksLittle) {
  // Two constraints on scales that differ by 1e6; the amounts are parts of the largest breach.
  TrialSummary stopped = Result({0}, {1, 1});
  stopped.early_stopped = true;
  const Ranking ranking = RankTrials(
      HistoryOf({Result({0}, {-4e6, 1}), Result({0}, {5, -1}), Result({0}, {-1e6, 2}), stopped,
                 Result({9}, {0, 0}), Result({1}, {3, std::nan("")}), Result({8}, {7, 3})}));
  EXPECT_THAT(ranking.ranked, ElementsAre(6, 4, 3, 2, 0, 1));
  EXPECT_THAT(ranking.failed, ElementsAre(5));
}

TEST(RankConstrained, OneObjectiveWithoutAnyIsRankedByLossAlone) {
  EXPECT_THAT(RankTrials(HistoryOf({Result({2}), Result({1}), Result({1})})).ranked,
              ElementsAre(1, 2, 0));
}

TEST(SeveralObjectives, WhoCannotRefusesAndSaysWhoCan) {
  Problem problem{.space = Make({Double("x", {0, 1}), Double("y", {0, 1})}), .objectives = 2};
  const Status refused = CreateAlgorithm("cmaes", problem).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(Message(refused),
              HasSubstr("cmaes searches for the best of one objective; for "
                        "several use asha, auto, bayesianoptimization, bohb, grid, "
                        "hyperband, motpe"));
  problem.objectives = 1;
  problem.constraints = 1;
  EXPECT_THAT(Message(CreateAlgorithm("cmaes", problem).status()),
              HasSubstr("cmaes knows no constraints on results; use"));
  EXPECT_TRUE(CreateAlgorithm("nsga2", problem).ok());
  EXPECT_TRUE(CreateAlgorithm("auto", problem).ok());
}

// Of a rung of nine the best three are promoted: its front, whatever the first objective says.
TEST(SeveralObjectives, ARungPromotesItsFront) {
  const Space given = Make({Double("x", {0, 1}), Int("epochs", {1, 9})});
  Problem problem{
      .space = given, .settings = {{"resource_name", "epochs"}, {"r_l", "9"}}, .objectives = 2};
  for (const std::string name : {"asha", "hyperband", "bohb"}) {
    const auto algorithm = CreateAlgorithm(name, problem);
    ASSERT_TRUE(algorithm.ok()) << algorithm.status();
    const Space space = *SearchSpace(name, problem);
    History history(space);
    const Proposal first = *(*algorithm)->Propose(history, 9, Rng(1));
    ASSERT_EQ(first.suggestions.size(), 9u);
    // Trials 8 and 9 are the front; the others are dominated, the better the later.
    for (int i = 0; i < 9; ++i) {
      history.Add(first.suggestions[i].point, i == 7   ? Result({5, 0})
                                              : i == 8 ? Result({0, 5})
                                                       : Result({20.0 - i, 20.0 - i}));
      history.SetLabels(i, first.suggestions[i].labels);
    }
    const Proposal next = *(*algorithm)->Propose(history, 3, Rng(1));
    std::vector<int64_t> parents;
    for (const Suggestion& suggestion : next.suggestions) {
      if (suggestion.parent) parents.push_back(suggestion.parent->trial());
    }
    EXPECT_THAT(parents, ::testing::UnorderedElementsAre(7, 8, 9)) << name;
  }
}

// One that breaks a constraint is behind all that keep it, however good.
TEST(SeveralObjectives, ARungPromotesWhatKeepsItsConstraints) {
  const Space given = Make({Double("x", {0, 1}), Int("epochs", {1, 9})});
  Problem problem{
      .space = given, .settings = {{"resource_name", "epochs"}, {"r_l", "9"}}, .constraints = 1};
  const auto algorithm = CreateAlgorithm("asha", problem);
  ASSERT_TRUE(algorithm.ok()) << algorithm.status();
  History history(*SearchSpace("asha", problem));
  const Proposal first = *(*algorithm)->Propose(history, 3, Rng(1));
  for (int i = 0; i < 3; ++i) {
    history.Add(first.suggestions[i].point, Result({1.0 * i}, {i == 0 ? -1.0 : 1.0}));
    history.SetLabels(i, first.suggestions[i].labels);
  }
  const Proposal next = *(*algorithm)->Propose(history, 1, Rng(1));
  ASSERT_TRUE(next.suggestions[0].parent);
  EXPECT_EQ(next.suggestions[0].parent->trial(), 2);
}

// The worst of a generation, which no front but the last has, goes on from one of the first.
TEST(SeveralObjectives, APopulationFollowsItsFront) {
  const Problem problem{.space = Make({Double("x", {0, 1}), Int("epochs", {5, 50, 5})}),
                        .settings = {{"n_population", "4"},
                                     {"truncation_threshold", "0.25"},
                                     {"resource_name", "epochs"}},
                        .objectives = 2};
  const auto algorithm = CreateAlgorithm("pbt", problem);
  ASSERT_TRUE(algorithm.ok()) << algorithm.status();
  History history(problem.space);
  const Proposal first = *(*algorithm)->Propose(history, 4, Rng(1));
  const std::vector<TrialSummary> results = {Result({2, 2}), Result({0, 9}), Result({1, 1.5}),
                                             Result({9, 0})};
  for (int i = 0; i < 4; ++i) {
    history.Add(first.suggestions[i].point, results[i]);
    history.SetLabels(i, first.suggestions[i].labels);
  }
  const Proposal next = *(*algorithm)->Propose(history, 4, Rng(1));
  ASSERT_EQ(next.suggestions.size(), 4u);
  EXPECT_THAT(next.suggestions[0].explanation, HasSubstr("trial 1 is among the worst 1 of 4"));
  EXPECT_NE(next.suggestions[0].parent->trial(), 1);
  for (int i = 1; i < 4; ++i) EXPECT_EQ(next.suggestions[i].parent->trial(), i + 1);
}

// ZDT1 (Zitzler, Deb & Thiele 2000) in four dimensions: f2 falls as the root of f1, and all but one
// coordinate must be found to be 0.
std::vector<double> Zdt1(const Point& x) {
  double rest = 0;
  for (size_t j = 1; j < x.size(); ++j) rest += x[j];
  const double g = 1 + 9 * rest / static_cast<double>(x.size() - 1);
  return {x[0], g * (1 - std::sqrt(x[0] / g))};
}

// The hypervolume after `trials`, one at a time. Where `limit` is less than 1, x[0] may not exceed
// it, and only what keeps that counts.
double VolumeFound(const std::string& name, int trials, double limit, uint64_t seed) {
  const Space space =
      Make({Double("a", {0, 1}), Double("b", {0, 1}), Double("c", {0, 1}), Double("d", {0, 1})});
  const bool limited = limit < 1;
  const auto algorithm = CreateAlgorithm(
      name,
      {.space = space, .max_trials = trials, .objectives = 2, .constraints = limited ? 1 : 0});
  EXPECT_TRUE(algorithm.ok()) << algorithm.status();
  History history(space);
  std::vector<Losses> found;
  while (history.size() < trials) {
    const auto proposal = (*algorithm)->Propose(history, 1, Rng(seed));
    EXPECT_TRUE(proposal.ok()) << proposal.status();
    const Point& point = proposal->suggestions.at(0).point;
    const std::vector<double> losses = Zdt1(point);
    history.Add(point, Result(losses, limited ? std::vector<double>{limit - point[0]}
                                              : std::vector<double>{}));
    if (point[0] <= limit) found.push_back(losses);
  }
  return Hypervolume(found, {1.1, 1.1});
}

double MeanVolume(const std::string& name, int trials, double limit = 1) {
  double sum = 0;
  constexpr int kSeeds = 6;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) sum += VolumeFound(name, trials, limit, seed);
  return sum / kSeeds;
}

TEST(SeveralObjectives, WhoLearnsFindsMoreOfTheFrontThanRandomSearch) {
  std::map<std::string, double> volume;
  for (const std::string name : {"random", "nsga2", "tpe", "motpe"}) {
    volume[name] = MeanVolume(name, 150);
    RecordProperty(name, std::to_string(volume[name]));
  }
  EXPECT_GT(volume["nsga2"], volume["random"] + 0.1);
  EXPECT_GT(volume["tpe"], volume["random"] + 0.15);
  EXPECT_GT(volume["motpe"], volume["random"] + 0.15);
}

// Deterministic and exact, so that a fifth of the trials does.
TEST(SeveralObjectives, AGaussianProcessFindsTheFrontInAFewTrials) {
  EXPECT_GT(MeanVolume("gp", 30), MeanVolume("motpe", 150));
  EXPECT_GT(MeanVolume("gp", 30, 0.3), MeanVolume("motpe", 150, 0.3));
}

// While nothing keeps them, what runs already says little, and yet the next one looks elsewhere.
TEST(SeveralObjectives, ManyAtOnceDoNotAllTryOnePlace) {
  const Space space = Make({Double("a", {0, 1}), Double("b", {0, 1})});
  History history(space);
  Rng rng(4);
  for (int i = 0; i < 12; ++i) {
    const Point point = {rng.Uniform(), rng.Uniform()};
    history.Add(point, Result({point[0], point[1]}, {-1 - point[0] - point[1]}));
  }
  const auto gp = CreateAlgorithm("gp", {.space = space, .objectives = 2, .constraints = 1});
  const auto proposal = (*gp)->Propose(history, 8, Rng(1));
  ASSERT_EQ(proposal->suggestions.size(), 8u);
  double furthest = 0;
  const Point& first = proposal->suggestions[0].point;
  for (const Suggestion& one : proposal->suggestions) {
    furthest = std::max(furthest, std::hypot(one.point[0] - first[0], one.point[1] - first[1]));
  }
  EXPECT_GT(furthest, 0.1);
}

// A trial's program chooses its numbers.
TEST(SeveralObjectives, NumbersThatAreTooFarApartBreakNothing) {
  const Space space = Make({Double("a", {0, 1}), Double("b", {0, 1})});
  for (const int objectives : {2, 3, 5}) {
    History history(space);
    Rng rng(5);
    for (int i = 0; i < 12; ++i) {
      const double sign = i % 2 == 0 ? 1 : -1;
      history.Add({rng.Uniform(), rng.Uniform()},
                  Result(std::vector<double>(objectives, sign * 1.7e308), {sign * 1e-200 * i}));
    }
    history.Add({0.5, 0.5}, Result(std::vector<double>(objectives, 0), {1e120}));
    for (const std::string name : {"gp", "motpe", "nsga2", "random"}) {
      const auto algorithm =
          CreateAlgorithm(name, {.space = space, .objectives = objectives, .constraints = 1});
      const auto proposal = (*algorithm)->Propose(history, 2, Rng(1));
      ASSERT_TRUE(proposal.ok()) << name << proposal.status();
      EXPECT_EQ(proposal->suggestions.size(), 2u) << name;
    }
  }
}

TEST(SeveralObjectives, AConstraintIsKeptAndTheFrontWithinIsFound) {
  EXPECT_GT(MeanVolume("nsga2", 150, 0.3), MeanVolume("random", 150, 0.3) + 0.05);
  EXPECT_GT(MeanVolume("motpe", 150, 0.3), MeanVolume("random", 150, 0.3) + 0.05);
}

}  // namespace
}  // namespace shirabe::suggestion
