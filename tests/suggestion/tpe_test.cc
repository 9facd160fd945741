// What is particular to TPE and to the ranking of trials. What holds for every algorithm is in
// tests/contract/algorithm_contract_test.cc.
#include "suggestion/tpe/tpe_algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "suggestion/history.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TrialSummary CompletedTpe(double loss) { return {.state = TrialState::kCompleted, .loss = loss}; }

TrialSummary Stopped(double loss, int64_t step) {
  return {.state = TrialState::kCompleted, .early_stopped = true, .loss = loss, .last_step = step};
}

std::unique_ptr<Algorithm> BuildTpe(const std::string& name, const Space& space,
                                    const Settings& settings = {}) {
  auto algorithm = CreateAlgorithm(name, {.space = space, .settings = settings});
  EXPECT_TRUE(algorithm.ok()) << algorithm.status();
  return *std::move(algorithm);
}

std::vector<Suggestion> AskTpe(Algorithm& algorithm, const History& history, int count) {
  return algorithm.Propose(history, count, Rng(1))->suggestions;
}

const char* const kBoth[] = {"tpe", "multivariate-tpe"};

TEST(Ranking, CompletedThenStoppedEarlyByHowFarThenFailed) {
  History history(Make({Double("x", {0, 1})}));
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const TrialSummary views[] = {Stopped(0, 5),     CompletedTpe(2), {},
                                CompletedTpe(nan), Stopped(1, 9),   CompletedTpe(-infinity),
                                Stopped(0.5, 9),   CompletedTpe(1), {TrialState::kInfeasible}};
  for (const TrialSummary& view : views) history.Add({0.1}, view);
  const Ranking ranking = RankTrials(history);
  EXPECT_THAT(ranking.ranked, ElementsAre(7, 1, 6, 4, 0));
  EXPECT_THAT(ranking.failed, ElementsAre(3, 5, 8));
  EXPECT_THAT(ranking.pending, ElementsAre(2));
  EXPECT_EQ(ranking.ended(), 8);
}

TEST(Tpe, StartsSpreadUntilEnoughTrialsHaveEnded) {
  const Space space = Make({Double("x", {0, 1})});
  for (const char* name : kBoth) {
    const auto tpe = BuildTpe(name, space, {{"n_startup_trials", "4"}});
    History history(space);
    const std::vector<Suggestion> first = AskTpe(*tpe, history, 8);
    for (const Suggestion& s : first) history.Add(s.point, TrialSummary{});
    std::vector<bool> eighth(8);
    for (const Suggestion& s : first) eighth[static_cast<size_t>(s.point[0] * 8)] = true;
    EXPECT_THAT(eighth, ::testing::Each(true)) << name;
    for (int i = 0; i < 3; ++i) history.Update(i, CompletedTpe(i));
    EXPECT_THAT(AskTpe(*tpe, history, 1)[0].explanation, HasSubstr("first points"));
    history.Update(3, {.state = TrialState::kInfeasible});
    EXPECT_THAT(AskTpe(*tpe, history, 1)[0].explanation,
                HasSubstr("times as likely among the 1 best"));
  }
}

// Twenty good trials in a corner, eighty others anywhere else.
History Corner(const Space& space) {
  History history(space);
  Rng rng(3);
  for (int i = 0; i < 20; ++i) {
    history.Add(space.FromUnit({0.2 * rng.Uniform(), 0.2 * rng.Uniform()}), CompletedTpe(0.01 * i));
  }
  while (history.size() < 100) {
    const Point point = space.Sample(rng);
    if (point[0] > 0.2 || point[1] > 0.2) history.Add(point, CompletedTpe(1));
  }
  return history;
}

TEST(Tpe, GoesWhereTheGoodTrialsAre) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  for (const char* name : kBoth) {
    const auto tpe = BuildTpe(name, space);
    int near = 0;
    for (int seed = 0; seed < 40; ++seed) {
      const Point point = tpe->Propose(Corner(space), 1, Rng(seed))->suggestions[0].point;
      near += point[0] < 0.3 && point[1] < 0.3 ? 1 : 0;
    }
    EXPECT_GT(near, 36) << name;
  }
}

TEST(Tpe, ABatchIsSpreadAndPendingTrialsKeepOthersAway) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  const auto tpe = BuildTpe("multivariate-tpe", space);
  History history = Corner(space);
  const auto spread = [](const std::vector<Suggestion>& suggestions) {
    double sum = 0;
    for (const Suggestion& a : suggestions) {
      for (const Suggestion& b : suggestions) {
        sum += std::hypot(a.point[0] - b.point[0], a.point[1] - b.point[1]);
      }
    }
    return sum;
  };
  std::vector<Suggestion> alone;
  for (int seed = 0; seed < 16; ++seed) {
    alone.push_back(tpe->Propose(history, 1, Rng(seed))->suggestions[0]);
  }
  EXPECT_GT(spread(AskTpe(*tpe, history, 16)), 1.2 * spread(alone));
}

TEST(Tpe, EarlierExperimentsSpareTheFirstTrialsAndFade) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  const History corner = Corner(space);
  std::vector<PriorTrial> prior;
  for (int source = 0; source < 2; ++source) {  // the same landscape on two scales
    for (int64_t i = 0; i < corner.size(); ++i) {
      const double loss = corner.trial(i).loss * (source == 0 ? 1 : 1e6) - 100 * source;
      prior.push_back({.point = corner.point(i), .loss = loss, .source = source});
    }
  }
  for (const char* name : kBoth) {
    const auto tpe = BuildTpe(name, space);
    const auto near = [&](const History& history, double corner_x) {
      int count = 0;
      for (int seed = 0; seed < 40; ++seed) {
        const Point point = tpe->Propose(history, 1, Rng(seed))->suggestions[0].point;
        count += std::abs(point[0] - corner_x) < 0.3 && std::abs(point[1] - corner_x) < 0.3 ? 1 : 0;
      }
      return count;
    };
    History history(space);
    history.SetPrior(prior);
    EXPECT_GT(near(history, 0), 32) << name;
    Rng rng(6);  // here the other corner is the good one
    for (int i = 0; i < 200; ++i) {
      const Point point = space.Sample(rng);
      history.Add(point, CompletedTpe(2 - point[0] - point[1]));
    }
    EXPECT_GT(near(history, 1), 24) << name;
  }
}

TEST(Tpe, FailuresAreAvoided) {
  const Space space = Make({Double("x", {0, 1})});
  for (const char* name : kBoth) {
    History history(space);
    Rng rng(4);
    for (int i = 0; i < 40; ++i) {
      history.Add({0.5 + 0.5 * rng.Uniform()}, {.state = TrialState::kInfeasible});
    }
    int low = 0;
    for (int seed = 0; seed < 40; ++seed) {
      low += BuildTpe(name, space)->Propose(history, 1, Rng(seed))->suggestions[0].point[0] < 0.5
                 ? 1
                 : 0;
    }
    EXPECT_GT(low, 36) << name;
  }
}

TEST(Tpe, JointKernelsSeeWhatSingleOnesCannot) {
  // Good where both categories agree: each alone says nothing.
  const Space space = Make(
      {Categorical("a", {"p", "q", "r"}), Categorical("b", {"p", "q", "r"}), Double("x", {0, 1})});
  History history(space);
  Rng rng(5);
  for (int i = 0; i < 90; ++i) {
    const Point point = space.Sample(rng);
    history.Add(point, CompletedTpe(point[0] == point[1] ? 0.01 * i : 10 + i));
  }
  int agree = 0;
  for (int seed = 0; seed < 60; ++seed) {
    const Point point =
        BuildTpe("multivariate-tpe", space)->Propose(history, 1, Rng(seed))->suggestions[0].point;
    agree += point[0] == point[1] ? 1 : 0;
  }
  EXPECT_GT(agree, 54);
}

TEST(Tpe, ASmallSpaceIsSearchedBestFirstToItsLastPoint) {
  const Space space = Make({Int("n", {1, 8}), Categorical("c", {"a", "b"})});
  for (const char* name : kBoth) {
    const auto tpe = BuildTpe(name, space, {{"n_startup_trials", "3"}, {"n_EI_candidates", "2"}});
    History history(space);
    for (int i = 0; i < 16; ++i) {
      const auto next = AskTpe(*tpe, history, 1);
      ASSERT_EQ(next.size(), 1u) << i;
      history.Add(next[0].point, CompletedTpe(next[0].point[0]));
    }
    EXPECT_EQ(tpe->Propose(history, 1, Rng(1))->outcome, Proposal::Outcome::kExhausted);
  }
}

TEST(Tpe, BothSpellingsOfASettingAreOne) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  const History history = Corner(space);
  for (const char* name : kBoth) {
    const auto point = [&](const Settings& settings) {
      return AskTpe(*BuildTpe(name, space, settings), history, 1)[0].point;
    };
    EXPECT_EQ(point({{"n_EI_candidates", "24"}}), point({}));
    EXPECT_EQ(point({{"n_EI_candidates", "5"}}), point({{"n_ei_candidates", "5"}}));
    EXPECT_NE(point({{"n_EI_candidates", "5"}}), point({}));
    const auto both = CreateAlgorithm(
        name, {.space = space, .settings = {{"n_EI_candidates", "5"}, {"n_ei_candidates", "5"}}});
    EXPECT_TRUE(absl::IsInvalidArgument(both.status()));
    EXPECT_THAT(Message(both.status()), HasSubstr("remove one"));
  }
}

TEST(Tpe, KatibsSettingsAreTakenAndNonsenseIsRefused) {
  const Space space = Make({Double("x", {0, 1})});
  for (const char* name : kBoth) {
    BuildTpe(name, space,
             {{"gamma", "0.25"},
              {"prior_weight", "1.0"},
              {"n_EI_candidates", "24"},
              {"n_startup_trials", "10"},
              {"random_state", "7"}});
    for (const Settings& settings :
         {Settings{{"gamma", "0"}}, Settings{{"gamma", "1.5"}}, Settings{{"prior_weight", "0"}},
          Settings{{"n_EI_candidates", "0"}}, Settings{{"n_ei_candidates", "-1"}}}) {
      EXPECT_TRUE(absl::IsInvalidArgument(
          CreateAlgorithm(name, {.space = space, .settings = settings}).status()))
          << settings[0].first;
    }
    const auto candidates = [&](const char* given) {
      History history(space);
      for (int i = 0; i < 20; ++i) {
        history.Add({0.05 * i}, {.state = TrialState::kCompleted, .loss = std::abs(i - 7.5)});
      }
      const auto tpe = BuildTpe(name, space, {{"n_ei_candidates", given}});
      return tpe->Propose(history, 1, Rng(3))->suggestions.at(0).point;
    };
    EXPECT_EQ(candidates("0"), candidates("24"));
    EXPECT_NE(candidates("0"), candidates("1"));
  }
}

}  // namespace
}  // namespace shirabe::suggestion
