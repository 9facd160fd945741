// What is particular to random, grid and sobol. What holds for every algorithm is in
// tests/contract/algorithm_contract_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "suggestion/algorithm.h"
#include "suggestion/unvisited_points.h"
#include "tests/suggestion/cpu_time.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Algorithm> Build(const std::string& name, const Space& space) {
  auto algorithm = CreateAlgorithm(name, {.space = space});
  EXPECT_TRUE(algorithm.ok()) << algorithm.status();
  return *std::move(algorithm);
}

Proposal Ask(Algorithm& algorithm, const History& history, int count) {
  StatusOr<Proposal> proposal = algorithm.Propose(history, count, Rng(1));
  EXPECT_TRUE(proposal.ok()) << proposal.status();
  return *std::move(proposal);
}

// Asks one at a time until exhausted; gives the indices in order.
std::vector<uint64_t> RunToTheEnd(const std::string& name, const Space& space, bool with_memo) {
  History history(space);
  std::vector<uint64_t> indices;
  for (;;) {
    const Proposal proposal = Ask(*Build(name, space), history, 1);
    if (proposal.outcome == Proposal::Outcome::kExhausted) return indices;
    const Point& point = proposal.suggestions.at(0).point;
    indices.push_back(space.IndexOf(point));
    history.Add(point, {});
    if (with_memo) history.set_memo(proposal.memo);
  }
}

TEST(Grid, VisitsEveryPointOnceInOrderOfAnyMixOfTypes) {
  const Space space = Make({Int("a", {1, 3}), Double("b", {0.1, 0.4, 0.1}), Discrete("c", {8, 2}),
                            Categorical("d", {"x", "y", "z"})});
  std::vector<uint64_t> all(72);
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  EXPECT_EQ(RunToTheEnd("grid", space, true), all);
  EXPECT_EQ(RunToTheEnd("grid", space, false), all);
}

TEST(Grid, ContinuousParametersAreRefusedByName) {
  const Space space = Make({Int("n", {1, 3}), Double("lr", {0, 1})});
  const auto grid = CreateAlgorithm("grid", {.space = space});
  EXPECT_TRUE(absl::IsInvalidArgument(grid.status()));
  EXPECT_THAT(Message(grid.status()), HasSubstr("\"lr\" is continuous"));
  EXPECT_THAT(Message(grid.status()), HasSubstr("give it a feasibleSpace.step"));
  const Space huge = Make({Int("a", {0, 0x1p53}), Int("b", {0, 0x1p53})});
  EXPECT_THAT(Message(CreateAlgorithm("grid", {.space = huge}).status()), HasSubstr("2^64"));
}

TEST(Grid, PointsTriedOutOfOrderAreNotTriedAgain) {
  const Space space = Make({Int("n", {0, 9})});
  History history(space);
  for (uint64_t index : {3, 0, 7, 3}) history.Add(space.At(index), {});
  const Proposal first = Ask(*Build("grid", space), history, 3);
  std::vector<uint64_t> indices;
  for (const auto& suggestion : first.suggestions) {
    indices.push_back(space.IndexOf(suggestion.point));
    history.Add(suggestion.point, {});
  }
  EXPECT_EQ(indices, (std::vector<uint64_t>{1, 2, 4}));
  history.set_memo(first.memo);
  EXPECT_EQ(space.IndexOf(Ask(*Build("grid", space), history, 1).suggestions[0].point), 5u);
  EXPECT_THAT(first.suggestions[2].explanation, HasSubstr("point 5 of the 10"));
}

TEST(Grid, AMemoThatCannotBeTrueIsIgnored) {
  const Space space = Make({Int("n", {0, 9})});
  History history(space);
  history.Add(space.At(0), {});
  for (const char* memo : {"grid 1 9", "grid 1 ", "grid 1 -1", "grid 1 1x", "grid 2 1", "sobol",
                           "grid 1 99999999999999999999999"}) {
    history.set_memo(memo);
    EXPECT_EQ(space.IndexOf(Ask(*Build("grid", space), history, 1).suggestions[0].point), 1u);
  }
}

TEST(Grid, AHundredThousandTrialsCostNoRescans) {
  const Space space = Make({Int("a", {1, 1000}), Int("b", {1, 200})});
  const auto grid = Build("grid", space);
  History history(space);
  // 5·10^9 look-ups, if each proposal began at 0, and those of the last tenth 19 times as many as
  // those of the first.
  double first_tenth = 0, begin = CpuSeconds();
  for (int i = 0; i < 100000; ++i) {
    const Proposal proposal = Ask(*grid, history, 1);
    ASSERT_EQ(space.IndexOf(proposal.suggestions.at(0).point), static_cast<uint64_t>(i));
    history.Add(proposal.suggestions[0].point, {});
    history.set_memo(proposal.memo);
    if (i == 9'999) first_tenth = CpuSeconds() - begin;
    if (i == 89'999) begin = CpuSeconds();
  }
  EXPECT_LT(CpuSeconds() - begin, 4 * first_tenth + 0.1);
}

TEST(Random, FollowsTheDistributions) {
  const Space space =
      Make({Double("lr", {1e-4, 1}, v1::LOG_UNIFORM), Double("n", {-3, 3}, v1::NORMAL)});
  const Proposal proposal = Ask(*Build("random", space), History(space), 4000);
  int small = 0, middle = 0;
  for (const auto& suggestion : proposal.suggestions) {
    const auto values = space.Decode(suggestion.point);
    small += values[0].number() < 1e-3 ? 1 : 0;
    middle += std::abs(values[1].number()) < 1 ? 1 : 0;
  }
  EXPECT_NEAR(small / 4000.0, 0.25, 0.03);
  EXPECT_NEAR(middle / 4000.0, 0.6827 / 0.9973, 0.03);
}

TEST(Random, SuggestionIOfAnExperimentIsTheSameHoweverManyAreAskedForAtOnce) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  for (const char* name : {"random", "sobol"}) {
    const auto algorithm = Build(name, space);
    const Proposal five = Ask(*algorithm, History(space), 5);
    History history(space);
    for (int i = 0; i < 5; ++i) {
      history.Add(Ask(*algorithm, history, 1).suggestions[0].point, {});
      EXPECT_EQ(history.point(i), five.suggestions[i].point) << name;
    }
  }
}

TEST(Sobol, TheFirstPointsOfAnExperimentAreStratified) {
  const Space space = Make({Double("x", {0, 1}), Int("n", {1, 16}), Categorical("c", {"a", "b"})});
  const Proposal proposal = Ask(*Build("sobol", space), History(space), 16);
  std::set<int> x;
  std::set<int64_t> n;
  int a = 0;
  for (const auto& suggestion : proposal.suggestions) {
    const auto values = space.Decode(suggestion.point);
    x.insert(static_cast<int>(values[0].number() * 16));
    n.insert(values[1].integer());
    a += values[2].category() == "a" ? 1 : 0;
  }
  EXPECT_EQ(x.size(), 16u);
  EXPECT_EQ(n.size(), 16u);
  EXPECT_EQ(a, 8);
}

TEST(Sobol, TooManyParametersAreAClearError) {
  std::vector<v1::ParameterSpec> parameters;
  for (int i = 0; i < 3668; ++i) parameters.push_back(Int("p" + std::to_string(i), {0, 1}));
  const auto sobol = CreateAlgorithm("sobol", {.space = Make(parameters)});
  EXPECT_TRUE(absl::IsInvalidArgument(sobol.status()));
  EXPECT_THAT(Message(sobol.status()), HasSubstr("3668 parameters and at most 3667"));
}

TEST(UnvisitedPoints, AllButOneOfAMillionIsFound) {
  const Space space = Make({Int("a", {1, 1000}, v1::LOG_UNIFORM), Int("b", {1, 1000})});
  constexpr uint64_t kMissing = 765432;
  History history(space);
  for (uint64_t i = 0; i < 1000000; ++i) {
    if (i != kMissing) history.Add(space.At(i), {});
  }
  for (const char* name : {"random", "sobol", "grid"}) {
    const Proposal proposal = Ask(*Build(name, space), history, 2);
    ASSERT_EQ(proposal.suggestions.size(), 1u) << name;
    EXPECT_EQ(space.IndexOf(proposal.suggestions[0].point), kMissing) << name;
  }
  history.Add(space.At(kMissing), {});
  for (const char* name : {"random", "sobol", "grid"}) {
    const Proposal proposal = Ask(*Build(name, space), history, 1);
    EXPECT_EQ(proposal.outcome, Proposal::Outcome::kExhausted) << name;
    EXPECT_EQ(proposal.reason, "all 1000000 points have been tried");
  }
}

// The middle of a normal distribution is soon tried out; the rest must still be found.
TEST(UnvisitedPoints, LooksBeyondWhatTheDistributionEverGives) {
  const Space space = Make({Int("a", {0, 100000}, v1::NORMAL), Int("b", {0, 0}),
                            Int("c", {0, 0x1p53}), Int("d", {0, 0x1p53})});
  History history(space);
  UnvisitedPoints unvisited(history);
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(unvisited.Draw(rng).has_value());
}

// More than 2^64 points cannot be counted, but not all of them are hard to find.
TEST(UnvisitedPoints, ATinyContinuousRangeEndsToo) {
  double max = 1;
  for (int i = 0; i < 3; ++i) max = std::nextafter(max, 2);
  const Space space = Make({Double("x", {1, max})});
  const auto random = Build("random", space);
  History history(space);
  Proposal proposal = Ask(*random, history, 10);
  EXPECT_EQ(proposal.suggestions.size(), 4u);  // as many doubles as there are
  for (const auto& suggestion : proposal.suggestions) history.Add(suggestion.point, {});
  proposal = Ask(*random, history, 1);
  EXPECT_EQ(proposal.outcome, Proposal::Outcome::kExhausted);
  EXPECT_EQ(proposal.reason, "10100 random draws gave no untried point");
}

TEST(UnvisitedPoints, TheWalkReachesEveryPointOfEverySize) {
  for (int count = 1; count <= 60; ++count) {
    const Space space = Make({Int("n", {1, static_cast<double>(count)}, v1::LOG_NORMAL)});
    History history(space);
    UnvisitedPoints unvisited(history);
    Rng rng(count);
    std::set<uint64_t> seen;
    while (const auto point = unvisited.Draw(rng)) seen.insert(space.IndexOf(*point));
    EXPECT_EQ(static_cast<int>(seen.size()), count);
  }
}

}  // namespace
}  // namespace shirabe::suggestion
