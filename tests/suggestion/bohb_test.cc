// Successive halving whose configurations come from a model: bohb, and asha with a searcher. What
// holds for every algorithm is in tests/contract/algorithm_contract_test.cc, what holds of rungs in
// rungs_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "suggestion/multifidelity/configuration_sampler.h"
#include "tests/suggestion/crew.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModelled[] = "multivariate-tpe on the ranks of ";

Problem BohbProblem(const Settings& more = {}) {
  Problem problem{.space = Make({Double("x", {0, 1}), Int("epochs", {1, 9}), Double("y", {0, 1})}),
                  .settings = {{"resource_name", "epochs"}, {"r_l", "9"}}};
  problem.settings.insert(problem.settings.end(), more.begin(), more.end());
  return problem;
}

double Distance(const Point& point) { return std::hypot(point[0] - 0.7, point[2] - 0.2); }

// Training shows the distance from the best point the better the longer it lasts.
Crew::Work Train(const Crew& crew, const Suggestion& made) {
  const int64_t epochs = crew.history().space().Decode(made.point)[1].integer();
  const double noise = std::sin(1000 * made.point[0] + 777 * made.point[2]) / 5;
  return {.time = epochs,
          .result = {.state = TrialState::kCompleted,
                     .loss = Distance(made.point) + noise / static_cast<double>(epochs)}};
}

bool IsNew(const Suggestion& made) { return !made.parent; }
bool IsModelled(const Suggestion& made) {
  return made.explanation.find(kModelled) != std::string::npos;
}

TEST(Bohb, ConfigurationsComeCloserAndAThirdStaysRandom) {
  Crew crew("bohb", BohbProblem());
  crew.Run(4, 300, Train);
  double modelled = 0, at_random = 0;
  int modelled_count = 0, random_count = 0;
  for (int i = 100; i < 300; ++i) {
    const Suggestion& made = crew.made()[i];
    if (!IsNew(made)) continue;
    (IsModelled(made) ? modelled : at_random) += Distance(made.point);
    ++(IsModelled(made) ? modelled_count : random_count);
  }
  EXPECT_LT(modelled / modelled_count, 0.5 * at_random / random_count);
  EXPECT_NEAR(random_count / double(random_count + modelled_count), 1 / 3.0, 0.12);
}

TEST(Bohb, TheSearcherIsAskedAsSoonAsItHasEnough) {
  Crew crew("bohb", BohbProblem({{"random_fraction", "0"}}));
  crew.Run(1, 60, Train);
  int begun = 0;  // one worker, so that all before have ended
  for (const Suggestion& made : crew.made()) {
    if (!IsNew(made)) continue;
    EXPECT_EQ(IsModelled(made), begun >= 10) << begun;
    ++begun;
  }
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

TEST(RankAcrossRungs, TheTopRungDecidesAmongThoseWhoReachedIt) {
  EXPECT_THAT(RankAcrossRungs({{1, 5}, {2, 4}, {3, 6}}), ElementsAre(1, 0, 2));
  EXPECT_THAT(RankAcrossRungs({{3, kNone}, {1, kNone}, {2, kNone}}), ElementsAre(1, 2, 0));
  EXPECT_THAT(RankAcrossRungs({}), ElementsAre());
}

TEST(RankAcrossRungs, WhoWasNotPromotedComesBehindThoseWhoWere) {
  // 0 and 1 were the best of rung 0, and changed places on rung 1.
  EXPECT_THAT(RankAcrossRungs({{1, 9}, {2, 8}, {3, kNone}, {4, kNone}}), ElementsAre(1, 0, 2, 3));
  // 2 ended when the two had been promoted, with a loss between theirs.
  EXPECT_THAT(RankAcrossRungs({{1, 9}, {2, 8}, {1.5, kNone}}), ElementsAre(1, 2, 0));
  // 2 is luckier than both.
  EXPECT_THAT(RankAcrossRungs({{1, 9}, {2, 8}, {0, kNone}}), ElementsAre(2, 1, 0));
}

TEST(RankAcrossRungs, BracketsThatBeganHigherAreComparedWhereTheyMeet) {
  // 0 was promoted from rung 0, where 1 was not; 2 and 3 began on rung 1, 3 with nothing to show.
  EXPECT_THAT(RankAcrossRungs({{1, 5}, {2, kNone}, {kNone, 4}, {kNone, 9}}),
              ElementsAre(2, 0, 1, 3));
  // Nobody above was ever on rung 0.
  EXPECT_THAT(RankAcrossRungs({{2, kNone}, {1, kNone}, {kNone, 4}}), ElementsAre(2, 1, 0));
}

// A loss that is no number is worse than any, on whatever rung.
TEST(Bohb, WhatDivergesIsLeftAlone) {
  Crew crew("bohb", BohbProblem({{"random_fraction", "0"}}));
  crew.Run(4, 200, [](const Crew& of, const Suggestion& made) {
    Crew::Work work = Train(of, made);
    if (made.point[0] > 0.5) work.result.loss = kNone;
    return work;
  });
  int diverged = 0, modelled = 0;
  for (const Suggestion& made : crew.made()) {
    if (!IsNew(made) || !IsModelled(made)) continue;
    ++modelled;
    diverged += made.point[0] > 0.5 ? 1 : 0;
  }
  EXPECT_LT(diverged, modelled / 4);
}

TEST(Bohb, BracketsShareWhatHasBeenLearned) {
  Crew crew("bohb", BohbProblem({{"random_fraction", "0"}}));
  crew.Run(1, 60, Train);
  bool shared = false;
  for (const Suggestion& made : crew.made()) {
    // The second bracket begins on the rung of 3 epochs, and the first one's results are there.
    shared |= IsNew(made) && IsModelled(made) &&
              made.explanation.find("begins on rung 1 of 2") != std::string::npos;
  }
  EXPECT_TRUE(shared);
}

TEST(Bohb, AnyAlgorithmOfPointsCanBeTheSearcher) {
  for (const std::string& name : Registry<AlgorithmInfo>::Get().Names()) {
    SCOPED_TRACE(name);
    const Problem problem = BohbProblem({{"searcher", name}});
    const auto built = CreateAlgorithm("bohb", problem);
    if (!built.ok()) {
      EXPECT_THAT(Message(built.status()), HasSubstr("searcher \"" + name + "\""));
      continue;
    }
    Crew crew("asha", problem);
    crew.Run(3, 60, Train);
    EXPECT_EQ(crew.history().size(), 60);
  }
}

TEST(Bohb, ASearcherThatCannotBeOneIsRefusedByName) {
  const auto error = [](const std::string& searcher) {
    return Message(CreateAlgorithm("bohb", BohbProblem({{"searcher", searcher}})).status());
  };
  EXPECT_THAT(error("hyperband"), HasSubstr("decides itself what is trained for how long"));
  EXPECT_THAT(error("bohb"), HasSubstr("give one that only chooses points"));
  EXPECT_THAT(error("pbt"), HasSubstr("decides itself"));
  EXPECT_THAT(error("tpee"), HasSubstr("did you mean \"tpe\"?"));
  EXPECT_THAT(error("grid"), HasSubstr("\"x\" is continuous"));
}

TEST(Bohb, EarlierExperimentsAreShownByTheirHighestRung) {
  const Problem problem = BohbProblem({{"random_fraction", "0"}, {"searcher", "cmaes"}});
  const auto bohb = *CreateAlgorithm("bohb", problem);
  History history(*SearchSpace("bohb", problem));
  std::vector<PriorTrial> prior;
  Rng rng(9);
  for (int i = 0; i < 60; ++i) {
    Point point = history.space().Sample(rng);
    const bool top = point[1] == history.space().axis(1).Coordinate(2);
    // What little training showed there was the opposite of the truth.
    prior.push_back({.point = point, .loss = top ? Distance(point) : -Distance(point)});
  }
  history.SetPrior(prior);
  const auto proposal = bohb->Propose(history, 8, Rng(1));
  ASSERT_EQ(proposal->suggestions.size(), 8u);
  double mean = 0;
  for (const Suggestion& made : proposal->suggestions) mean += Distance(made.point) / 8;
  EXPECT_LT(mean, 0.35) << "of random points 0.5";
}

}  // namespace
}  // namespace shirabe::suggestion
