// What is particular to the algorithm cmaes: from trials to generations. What holds for every
// algorithm is in tests/contract/algorithm_contract_test.cc, the mathematics in cma_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "suggestion/algorithm.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;
using Loss = std::function<double(const Point&)>;

constexpr char kLabel[] = "cmaes-generation";

std::unique_ptr<Algorithm> BuildCmaes(const Space& space, const Settings& settings = {}) {
  auto algorithm = CreateAlgorithm("cmaes", {.space = space, .settings = settings});
  EXPECT_TRUE(algorithm.ok()) << algorithm.status();
  return *std::move(algorithm);
}

Space Reals(int dimensions) {
  std::vector<v1::ParameterSpec> parameters;
  for (int i = 0; i < dimensions; ++i) {
    parameters.push_back(Double("x" + std::to_string(i), {-5, 5}));
  }
  return Make(parameters);
}

Space Mixed() {
  return Make({Double("lr", {1e-5, 1e-1}, v1::LOG_UNIFORM), Int("n", {1, 512}, v1::LOG_UNIFORM),
               Double("drop", {0, 0.5, 0.1}), Categorical("opt", {"sgd", "adam", "lion"})});
}

double BowlCmaes(const Point& x) {
  double sum = 0;
  for (double value : x) sum += std::pow(value - 0.3, 2);
  return sum;
}

double MixedLoss(const Point& x) { return BowlCmaes({x[0], x[1], x[2]}) + (x[3] == 1 ? 0 : 0.3); }

TrialSummary Completed(double loss) { return {.state = TrialState::kCompleted, .loss = loss}; }

// An experiment of one kind: how it is run.
struct Way {
  int trials = 200;
  int parallel = 1;
  bool memo = true;
  bool labels = true;
};

struct Outcome {
  double best = std::numeric_limits<double>::infinity();
  std::vector<Point> points;
};

void AddAll(History& history, const Proposal& proposal, const Way& way) {
  for (const Suggestion& suggestion : proposal.suggestions) {
    history.Add(suggestion.point, {});
    if (way.labels) history.SetLabels(history.size() - 1, suggestion.labels);
  }
  history.set_memo(way.memo ? proposal.memo : "");
}

// Keeps `parallel` trials running; a random one of them ends next.
Outcome RunExperiment(Algorithm& algorithm, History history, const Loss& loss, const Way& way) {
  Outcome outcome;
  Rng rng(17);
  std::vector<int64_t> active;
  while (true) {
    const int64_t left = way.trials - history.size();
    const int count = static_cast<int>(std::min<int64_t>(way.parallel - active.size(), left));
    if (count > 0) {
      const auto proposal = algorithm.Propose(history, count, Rng(1));
      EXPECT_TRUE(proposal.ok() && !proposal->suggestions.empty());
      if (!proposal.ok() || proposal->suggestions.empty()) return outcome;
      for (size_t i = 0; i < proposal->suggestions.size(); ++i) {
        active.push_back(history.size() + static_cast<int64_t>(i));
      }
      AddAll(history, *proposal, way);
    }
    if (active.empty()) break;
    const size_t which = rng.Below(active.size());
    const int64_t index = active[which];
    active.erase(active.begin() + static_cast<int64_t>(which));
    const double value = loss(history.point(index));
    history.Update(index, std::isfinite(value) ? Completed(value)
                                               : TrialSummary{.state = TrialState::kInfeasible});
    outcome.best = std::min(outcome.best, value);
  }
  for (int64_t i = 0; i < history.size(); ++i) outcome.points.push_back(history.point(i));
  return outcome;
}

TEST(Cmaes, FindsTheMinimumOfNumbersStepsAndCategories) {
  const auto real =
      RunExperiment(*BuildCmaes(Reals(5)), History(Reals(5)), BowlCmaes, {.trials = 500});
  EXPECT_LT(real.best, 1e-6);
  const auto mixed =
      RunExperiment(*BuildCmaes(Mixed()), History(Mixed()), MixedLoss, {.trials = 300});
  EXPECT_LT(mixed.best, 0.005);
}

TEST(Cmaes, TheMemoChangesNoAnswer) {
  for (const Space& space : {Reals(4), Mixed()}) {
    for (int parallel : {1, 3, 16}) {
      const Loss& loss = space.axis(0).name() == "lr" ? MixedLoss : BowlCmaes;
      const Way with{.trials = 150, .parallel = parallel};
      const Way without{.trials = 150, .parallel = parallel, .memo = false};
      EXPECT_EQ(RunExperiment(*BuildCmaes(space), History(space), loss, with).points,
                RunExperiment(*BuildCmaes(space), History(space), loss, without).points);
    }
  }
}

TEST(Cmaes, TheMemoChangesNoAnswerAcrossRestarts) {
  const Space space = Reals(2);
  const Loss flat = [](const Point& x) { return std::floor(8 * x[0]) + std::floor(8 * x[1]); };
  for (const char* strategy : {"ipop", "bipop"}) {
    const Settings settings = {{"restart_strategy", strategy}};
    const Way with{.trials = 600, .parallel = 2};
    const Way without{.trials = 600, .parallel = 2, .memo = false};
    EXPECT_EQ(RunExperiment(*BuildCmaes(space, settings), History(space), flat, with).points,
              RunExperiment(*BuildCmaes(space, settings), History(space), flat, without).points);
  }
}

TEST(Cmaes, SlotsThatRunAtOnceStillConverge) {
  for (int parallel : {4, 8, 32}) {
    const auto outcome = RunExperiment(*BuildCmaes(Reals(5)), History(Reals(5)), BowlCmaes,
                                       {.trials = 600, .parallel = parallel});
    EXPECT_LT(outcome.best, 1e-2 * parallel / 32) << parallel;
  }
}

TEST(Cmaes, WithoutLabelsItsGenerationsFollowFromTheOrder) {
  const Way way{.trials = 400, .memo = false, .labels = false};
  EXPECT_LT(RunExperiment(*BuildCmaes(Reals(4)), History(Reals(4)), BowlCmaes, way).best, 1e-5);
  const Way memo{.trials = 400, .labels = false};
  EXPECT_EQ(RunExperiment(*BuildCmaes(Reals(4)), History(Reals(4)), BowlCmaes, way).points,
            RunExperiment(*BuildCmaes(Reals(4)), History(Reals(4)), BowlCmaes, memo).points);
  const Way labelled{.trials = 400};
  EXPECT_EQ(RunExperiment(*BuildCmaes(Reals(4)), History(Reals(4)), BowlCmaes, way).points,
            RunExperiment(*BuildCmaes(Reals(4)), History(Reals(4)), BowlCmaes, labelled).points);
}

TEST(Cmaes, AnOptimumOnTheBoundIsMetExactly) {
  const Loss corner = [](const Point& x) { return x[0] + x[1] - x[2]; };
  const auto outcome =
      RunExperiment(*BuildCmaes(Reals(3)), History(Reals(3)), corner, {.trials = 300});
  EXPECT_EQ(outcome.best, -1);
}

TEST(Cmaes, FailuresPushItAwayAndDoNotStopIt) {
  const Loss half = [](const Point& x) {
    return x[0] < 0.4 ? std::numeric_limits<double>::quiet_NaN() : BowlCmaes(x);
  };
  const auto outcome =
      RunExperiment(*BuildCmaes(Reals(3)), History(Reals(3)), half, {.trials = 300});
  EXPECT_NEAR(outcome.best, 0.01, 1e-3);  // at the border of what fails
}

// Half of the values of n and drop are off the optimum's level; all of them stay reachable.
TEST(Cmaes, StepsDoNotFreezeIt) {
  const Space space = Make({Int("a", {0, 20}), Int("b", {1, 1000}, v1::LOG_UNIFORM),
                            Double("c", {0, 1}), Double("d", {0, 1})});
  const Loss steps = [](const Point& x) {
    return BowlCmaes({x[2], x[3]}) + 10 * std::abs(x[0] - x[1]) + std::abs(x[0] - 0.9);
  };
  const auto outcome = RunExperiment(*BuildCmaes(space), History(space), steps, {.trials = 500});
  EXPECT_LT(outcome.best, 0.4);
}

TEST(Cmaes, AMemoOfAnotherHistoryIsIgnored) {
  const Space space = Reals(3);
  History history(space);
  const auto algorithm = BuildCmaes(space);
  for (int round = 0; round < 10; ++round) {
    const Proposal proposal = *algorithm->Propose(history, 5, Rng(1));
    AddAll(history, proposal, {});
    for (int64_t i = history.size() - 5; i < history.size(); ++i) {
      history.Update(i, Completed(BowlCmaes(history.point(i))));
    }
  }
  const std::string memo = algorithm->Propose(history, 1, Rng(1))->memo;
  history.set_memo("");
  const Point expected = algorithm->Propose(history, 1, Rng(1))->suggestions[0].point;
  ASSERT_GT(memo.size(), 100u);
  for (size_t i = 0; i < memo.size(); i += 3) {  // a flipped bit anywhere
    std::string changed = memo;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    history.set_memo(changed);
    EXPECT_EQ(algorithm->Propose(history, 1, Rng(1))->suggestions[0].point, expected);
  }
  history.set_memo(memo);
  EXPECT_EQ(algorithm->Propose(history, 1, Rng(1))->suggestions[0].point, expected);
  const Point other = algorithm->Propose(history, 1, Rng(2))->suggestions[0].point;
  history.set_memo("");
  EXPECT_EQ(algorithm->Propose(history, 1, Rng(2))->suggestions[0].point, other);
  History shorter(space);
  shorter.set_memo(memo);
  EXPECT_TRUE(algorithm->Propose(shorter, 1, Rng(1)).ok());
}

TEST(Cmaes, AsksForAnotherMemberUntilHalfOfAGenerationHasEnded) {
  const Space space = Reals(3);
  const auto algorithm = BuildCmaes(space, {{"popsize", "6"}});
  History history(space);
  AddAll(history, *algorithm->Propose(history, 6, Rng(1)), {});
  const auto label = [&] {
    return algorithm->Propose(history, 1, Rng(1))->suggestions.at(0).labels.at(0);
  };
  EXPECT_EQ(label(), std::make_pair(std::string(kLabel), std::string("0.0")));
  for (int i = 0; i < 2; ++i) history.Update(i, Completed(i));
  AddAll(history, *algorithm->Propose(history, 1, Rng(1)), {});
  EXPECT_EQ(label().second, "0.0");
  history.Update(6, Completed(1));
  EXPECT_EQ(label().second, "0.1");
}

TEST(Cmaes, ALateResultStillCounts) {
  const Space space = Reals(3);
  const auto algorithm = BuildCmaes(space, {{"popsize", "6"}});
  History history(space);
  AddAll(history, *algorithm->Propose(history, 7, Rng(1)), {});
  for (int i = 0; i < 6; ++i) history.Update(i, Completed(i));
  const Proposal before = *algorithm->Propose(history, 1, Rng(1));
  AddAll(history, before, {});
  const Point without = algorithm->Propose(history, 1, Rng(1))->suggestions[0].point;
  history.Update(6, Completed(-100));
  EXPECT_NE(algorithm->Propose(history, 1, Rng(1))->suggestions[0].point, without);
}

TEST(Cmaes, StartsWhereEarlierTrialsWereGood) {
  const Space space = Reals(3);
  History history(space);
  Rng rng(5);
  for (int i = 0; i < 60; ++i) {
    const Point point = space.Sample(rng);
    history.Add(point, Completed(BowlCmaes(point)));
  }
  const Loss distance = [](const Point& x) { return std::sqrt(BowlCmaes(x)); };
  const auto mean_distance = [&](const History& from) {
    double sum = 0;
    const Proposal proposal = *BuildCmaes(space)->Propose(from, 30, Rng(1));
    for (const Suggestion& suggestion : proposal.suggestions) sum += distance(suggestion.point);
    return sum / 30;
  };
  EXPECT_LT(mean_distance(history), 0.75 * mean_distance(History(space)));

  History prior(space);
  std::vector<PriorTrial> trials;
  for (int i = 0; i < 60; ++i) {  // two sources, with losses that cannot be compared
    const Point point = history.point(i);
    trials.push_back(
        {.point = point, .loss = (i < 30 ? 1 : -1e6) + BowlCmaes(point), .source = i / 30});
  }
  prior.SetPrior(trials);
  EXPECT_LT(mean_distance(prior), 0.75 * mean_distance(History(space)));
}

TEST(Cmaes, RestartsOnceNothingIsLeftToFind) {
  const Space space = Reals(2);
  const auto runs = [&space](const char* strategy) {
    const auto algorithm = BuildCmaes(space, {{"restart_strategy", strategy}});
    History history(space);
    std::set<std::string> seen;
    for (int i = 0; i < 120; ++i) {
      const Proposal proposal = *algorithm->Propose(history, 6, Rng(1));
      AddAll(history, proposal, {});
      for (const Suggestion& suggestion : proposal.suggestions) {
        seen.insert(suggestion.labels[0].second.substr(0, 1));
      }
      for (int64_t k = history.size() - 6; k < history.size(); ++k) {
        history.Update(k, Completed(1));
      }
    }
    return seen.size();
  };
  EXPECT_EQ(runs("none"), 1u);
  EXPECT_GT(runs("ipop"), 1u);
  EXPECT_GT(runs("bipop"), 1u);
}

// A trial that hangs holds up neither the search nor, for long, the memo.
TEST(Cmaes, ATrialThatHangsIsNotWaitedForForEver) {
  const Space space = Reals(3);
  const auto algorithm = BuildCmaes(space);
  History history(space);
  std::set<std::string> memos;
  for (int round = 0; round < 60; ++round) {
    const Proposal proposal = *algorithm->Propose(history, 7, Rng(1));
    memos.insert(proposal.memo);
    AddAll(history, proposal, {});
    for (int64_t i = history.size() - 7; i < history.size(); ++i) {
      if (i != 3) history.Update(i, Completed(BowlCmaes(history.point(i))));
    }
  }
  EXPECT_GT(memos.size(), 30u);
  EXPECT_LT(memos.size(), 45u);  // it stood still for twenty generations
  double best = 1;
  for (int64_t i = 0; i < history.size(); ++i) {
    if (i != 3) best = std::min(best, history.trial(i).loss);
  }
  EXPECT_LT(best, 1e-6);
}

TEST(Cmaes, ThousandsOfCategoriesNeedNoMemo) {
  std::vector<std::string> names(9000);
  for (size_t i = 0; i < names.size(); ++i) names[i] = "c" + std::to_string(i);
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1}), Categorical("c", names)});
  const auto outcome = RunExperiment(*BuildCmaes(space), History(space), BowlCmaes, {.trials = 40});
  EXPECT_EQ(outcome.points.size(), 40u);
}

TEST(Cmaes, FewerThanTwoNumbersAreRefusedByCount) {
  const Space one = Make({Double("lr", {0, 1}), Categorical("c", {"a", "b"})});
  const Status status = CreateAlgorithm("cmaes", {.space = one}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), HasSubstr("there is 1 parameter"));
  EXPECT_THAT(Message(status), HasSubstr("needs at least 2"));
}

TEST(Cmaes, KatibsSettingsAreKnownAndOthersExplained) {
  const auto with = [](const char* name, const char* value) {
    return CreateAlgorithm("cmaes", {.space = Reals(2), .settings = {{name, value}}}).status();
  };
  EXPECT_TRUE(with("restart_strategy", "none").ok());
  EXPECT_TRUE(with("sigma", "0.001").ok());
  EXPECT_TRUE(with("popsize", "12").ok());
  EXPECT_TRUE(with("lr_adapt", "True").ok());
  EXPECT_THAT(Message(with("restart_strategy", "bipo")), HasSubstr("did you mean \"bipop\"?"));
  EXPECT_THAT(Message(with("sigma", "-1")), HasSubstr("at least 0"));
  EXPECT_FALSE(with("popsize", "2").ok());
}

TEST(Cmaes, KatibsSpellingsMeanWhatOursMean) {
  const auto first = [](const Settings& settings) {
    const Space space = Reals(2);
    return BuildCmaes(space, settings)->Propose(History(space), 1, Rng(1))->suggestions.at(0).point;
  };
  EXPECT_EQ(first({{"sigma", "2"}}), first({{"sigma", "1"}}));
  EXPECT_EQ(first({{"sigma", "0"}}), first({}));
  EXPECT_NE(first({{"sigma", "1"}}), first({}));
  // What is left where nothing improves: none and None never begin again.
  const auto last = [](const char* strategy) {
    const Space space = Reals(2);
    const auto cmaes = BuildCmaes(space, {{"restart_strategy", strategy}});
    History history(space);
    for (int i = 0; i < 400; ++i) {
      const Suggestion next = cmaes->Propose(history, 1, Rng(1))->suggestions.at(0);
      history.Add(next.point, {.state = TrialState::kCompleted, .loss = 1});
      history.SetLabels(history.size() - 1, next.labels);
    }
    return history.point(399);
  };
  EXPECT_EQ(last("None"), last("none"));
  EXPECT_NE(last("None"), last("bipop"));
}

TEST(Cmaes, ManyDimensionsStayWithinTheMemo) {
  const Space space = Reals(63);
  const auto algorithm = BuildCmaes(space, {{"lr_adapt", "true"}});
  History history(space);
  for (int round = 0; round < 3; ++round) {
    const Proposal proposal = *algorithm->Propose(history, 16, Rng(1));
    EXPECT_LE(proposal.memo.size(), 64u << 10);
    EXPECT_FALSE(proposal.memo.empty());
    AddAll(history, proposal, {});
    for (int64_t i = history.size() - 16; i < history.size(); ++i) {
      history.Update(i, Completed(BowlCmaes(history.point(i))));
    }
  }
  EXPECT_TRUE(BuildCmaes(Reals(500))->Propose(History(Reals(500)), 4, Rng(1)).ok());
}

}  // namespace
}  // namespace shirabe::suggestion
