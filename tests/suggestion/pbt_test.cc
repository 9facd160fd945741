// Population-based training. What holds for every algorithm is in
// tests/contract/algorithm_contract_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "suggestion/evolution/pbt_population.h"
#include "tests/suggestion/crew.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;

constexpr int kEpochs = 2;

Space Parameters() {
  return Make({Double("lr", {1e-4, 1e-1}, v1::LOG_UNIFORM), Int("width", {8, 128, 8}),
               Int("epochs", {5, 25, 5}), Categorical("optimizer", {"sgd", "adam", "lion"})});
}

Problem PbtProblem(Settings more) {
  Problem problem{.space = Parameters(), .settings = std::move(more)};
  problem.settings.emplace_back("resource_name", "epochs");
  return problem;
}

std::string LabelOf(const Suggestion& suggestion, const std::string& name) {
  for (const auto& [key, value] : suggestion.labels) {
    if (key == name) return value;
  }
  return "";
}

int64_t Epochs(const Crew& crew, const Suggestion& suggestion) {
  return crew.history().space().Decode(suggestion.point)[kEpochs].integer();
}

// The best learning rate is in the middle of the range.
Crew::Work TrainPbt(const Crew&, const Suggestion& suggestion) {
  return {.result = {.state = TrialState::kCompleted, .loss = std::abs(suggestion.point[0] - 0.5)}};
}

// Katib names the loser itself as the parent, so that it keeps its own checkpoint.
TEST(Pbt, ALoserTakesAWinnersParametersAndItsCheckpoint) {
  Crew crew("pbt", PbtProblem({{"n_population", "10"}}));
  crew.Run(1, 20, TrainPbt);  // so that everyone is compared with all
  std::vector<double> losses;
  for (int i = 0; i < 10; ++i) losses.push_back(crew.history().trial(i).loss);
  std::vector<double> sorted = losses;
  std::sort(sorted.begin(), sorted.end());
  int exploits = 0;
  for (int i = 10; i < 20; ++i) {
    const Suggestion& made = crew.made()[i];
    ASSERT_TRUE(made.parent);
    const auto parent = static_cast<int>(made.parent->trial()) - 1;
    EXPECT_EQ(LabelOf(made, "generation"), "1");
    EXPECT_EQ(Epochs(crew, made), 10);
    if (LabelOf(made, "move") == "continue") {
      EXPECT_EQ(LabelOf(made, "member"), std::to_string(parent));
      Point same = crew.made()[parent].point;
      same[kEpochs] = made.point[kEpochs];
      EXPECT_EQ(made.point, same) << "goes on unchanged";
    } else {
      ++exploits;
      EXPECT_EQ(LabelOf(made, "move"), "exploit");
      EXPECT_NE(LabelOf(made, "member"), std::to_string(parent));
      EXPECT_LE(losses[parent], sorted[1]) << "one of the best two";
      EXPECT_GE(losses[std::stoi(LabelOf(made, "member"))], sorted[8]) << "one of the worst two";
      EXPECT_NE(made.point[0], crew.made()[parent].point[0]) << "perturbed";
      EXPECT_THAT(made.explanation, HasSubstr("is among the worst 2 of 10"));
      EXPECT_THAT(made.explanation, HasSubstr("checkpoint of trial " + std::to_string(parent + 1)));
    }
  }
  EXPECT_EQ(exploits, 2);
}

TEST(Pbt, TheLineageOfEveryTrialIsOneGenerationLonger) {
  for (const int workers : {1, 2, 3, 8, 30}) {
    SCOPED_TRACE(workers);
    Crew crew("pbt", PbtProblem({{"n_population", "8"}, {"truncation_threshold", "0.25"}}));
    crew.Run(workers, 1000, TrainPbt);
    EXPECT_EQ(crew.history().size(), 8 * 5) << "five generations of eight, and then it is done";
    EXPECT_EQ(crew.exhausted(), 1);
    for (const Suggestion& made : crew.made()) {
      const int generation = std::stoi(LabelOf(made, "generation"));
      EXPECT_EQ(Epochs(crew, made), 5 * (generation + 1));
      ASSERT_EQ(made.parent.has_value(), generation > 0);
      if (!made.parent) continue;
      EXPECT_EQ(Epochs(crew, crew.made()[made.parent->trial() - 1]), 5 * generation);
    }
  }
}

// Progress depends on a learning rate whose best value falls, and is kept in the checkpoint: that
// of a member of which nobody takes anything over is what its first parameters are worth.
double MeanProgress(const std::string& threshold) {
  const auto train = [](const Crew& of, const Suggestion& made) {
    const double best = 0.6 - 0.02 * static_cast<double>(Epochs(of, made)) / 5;
    const double gained = 1 - 2 * std::abs(made.point[0] - best);
    const double before = made.parent ? -of.history().trial(made.parent->trial() - 1).loss : 0;
    return Crew::Work{.result = {.state = TrialState::kCompleted, .loss = -before - gained}};
  };
  Crew crew("pbt", PbtProblem({{"n_population", "20"}, {"truncation_threshold", threshold}}));
  crew.Run(4, 1000, train);
  double sum = 0;
  for (int64_t i = 0; i < crew.history().size(); ++i) {
    if (Epochs(crew, crew.made()[i]) == 25) sum -= crew.history().trial(i).loss;
  }
  return sum / 20;
}

TEST(Pbt, WhatTheWinnersHaveLearnedSpreads) {
  const double alone = MeanProgress("0"), together = MeanProgress("0.2");
  EXPECT_LT(alone, 3);
  EXPECT_GT(together, 4) << "of 5";
}

TEST(Pbt, AFailedMemberFollowsAWinnerAndIfThereIsNoneBeginsAnew) {
  Crew crew("pbt", PbtProblem({{"n_population", "4"}}));
  crew.Run(1, 12, [](const Crew& of, const Suggestion& suggestion) {
    Crew::Work work = TrainPbt(of, suggestion);
    if (of.history().size() < 4) work.result.state = TrialState::kInfeasible;
    if (of.history().size() == 4) work.result.loss = std::numeric_limits<double>::quiet_NaN();
    return work;
  });
  for (const int i : {4, 5}) {
    EXPECT_FALSE(crew.made()[i].parent) << "nobody had a result";
    EXPECT_EQ(LabelOf(crew.made()[i], "member"), std::to_string(i - 4)) << "each in its turn";
    EXPECT_THAT(crew.made()[i].explanation, HasSubstr("gave no result, nor has any other"));
  }
  for (int i = 6; i < 12; ++i) {
    ASSERT_TRUE(crew.made()[i].parent);
    EXPECT_GE(crew.made()[i].parent->trial(), 6) << "the first to have a result";
  }
}

TEST(Pbt, NeverMoreThanHalfOfAGenerationIsReplaced) {
  Crew crew("pbt", PbtProblem({{"n_population", "10"}, {"truncation_threshold", "1"}}));
  crew.Run(1, 20, TrainPbt);
  int exploits = 0;
  for (int i = 10; i < 20; ++i) {
    if (LabelOf(crew.made()[i], "move") != "exploit") continue;
    ++exploits;
    EXPECT_THAT(crew.made()[i].explanation, HasSubstr("is among the worst 5 of 10"));
  }
  EXPECT_EQ(exploits, 5);
}

// It makes the last generation again, from the one before: nobody goes on beyond the last.
TEST(Pbt, WhoFailsInTheLastGenerationFollowsAWinnerOfTheOneBefore) {
  Crew crew("pbt", PbtProblem({{"n_population", "4"}}));
  bool failed = false;
  crew.Run(1, 100, [&](const Crew& of, const Suggestion& suggestion) {
    Crew::Work work = TrainPbt(of, suggestion);
    const bool last = Epochs(of, suggestion) == 25 && LabelOf(suggestion, "member") == "3";
    if (last && !failed) work.result.state = TrialState::kInfeasible;
    failed = failed || last;
    return work;
  });
  ASSERT_TRUE(failed);
  EXPECT_EQ(crew.history().size(), 4 * 5 + 1);
  EXPECT_EQ(crew.exhausted(), 1);
  for (const Suggestion& made : crew.made()) {
    EXPECT_LT(std::stoi(LabelOf(made, "generation")), 5);
    if (!made.parent) continue;
    EXPECT_EQ(Epochs(crew, crew.made()[made.parent->trial() - 1]), Epochs(crew, made) - 5);
  }
}

TEST(Pbt, WithoutAResourceItGoesOnForAsLongAsTrialsMayBeMade) {
  Problem problem{.space = Parameters(),
                  .settings = {{"n_population", "5"}, {"suggestion_trial_dir", "/opt/katib/data"}}};
  Crew crew("pbt", problem);
  crew.Run(3, 100, TrainPbt);
  EXPECT_EQ(crew.history().size(), 100);
  EXPECT_EQ(LabelOf(crew.made()[99], "generation"), "19");
}

TEST(Pbt, StartPointsAreTheFirstMembers) {
  Crew crew("pbt", PbtProblem({{"n_population", "4"}}));
  crew.AddForeign(crew.history().space().Canonical({0.5, 0.5, 0, 1}),
                  {.state = TrialState::kCompleted, .loss = 0});
  const auto proposal = crew.algorithm().Propose(crew.history(), 10, Rng(1));
  ASSERT_EQ(proposal->suggestions.size(), 4u);
  EXPECT_EQ(LabelOf(proposal->suggestions[0], "member"), "1");
  EXPECT_EQ(LabelOf(proposal->suggestions[3], "member"), "0");
  EXPECT_EQ(proposal->suggestions[3].parent->trial(), 1);
}

TEST(Pbt, WrongSettingsAreRefusedByName) {
  const auto error = [](const Settings& settings) {
    return Message(CreateAlgorithm("pbt", {.space = Parameters(), .settings = settings}).status());
  };
  EXPECT_EQ(error({{"n_population", "40"},
                   {"truncation_threshold", "0.2"},
                   {"resample_probability", "0.3"},
                   {"suggestion_trial_dir", "/opt/katib/data/"}}),
            "");
  // Katib compares the text with a number, and accepts them.
  EXPECT_THAT(error({{"n_population", "1"}}), HasSubstr("it must be within 2"));
  EXPECT_THAT(error({{"n_population", "many"}}), HasSubstr("whole number"));
  EXPECT_THAT(error({{"truncation_threshold", "1.5"}}), HasSubstr("within 0 … 1"));
  EXPECT_THAT(error({{"resample_probability", "-1"}}), HasSubstr("within 0 … 1"));
  EXPECT_THAT(error({{"resource_name", "lr"}}), HasSubstr("continuous; give it a feasibleSpace.s"));
  EXPECT_THAT(error({{"resource_name", "optimizer"}}), HasSubstr("categorical"));
  EXPECT_THAT(error({{"resource_name", "epoch"}}), HasSubstr("is not a parameter"));
}

// ---- the explore step ---------------------------------------------------------------------------

// Katib's ignores steps, gives an int 7.2 and a category of index -1.
TEST(Perturb, StaysInTheSpaceAndMovesWhatCanMove) {
  const Space space =
      Make({Double("lr", {1e-4, 1e-1}, v1::LOG_UNIFORM), Double("drop", {0, 0.5, 0.1}),
            Int("n", {1, 9}), Int("width", {8, 128, 8}), Discrete("bs", {16, 32, 64}),
            Double("signed", {-1, 1}), Int("fixed", {3, 3}), Categorical("c", {"only"})});
  Rng rng(3);
  for (int i = 0; i < 2000; ++i) {
    const Point from = space.Sample(rng);
    const Point to = Perturb(space, from, std::nullopt, rng);
    EXPECT_EQ(space.Canonical(to), to);
    for (int axis = 0; axis < 6; ++axis) EXPECT_NE(to[axis], from[axis]) << axis;
    for (int axis = 6; axis < 8; ++axis) EXPECT_EQ(to[axis], from[axis]) << axis;
  }
}

TEST(Perturb, MovesAPositiveNumberByAFifth) {
  const Space space = Make({Double("lr", {1e-4, 1e-1}, v1::LOG_UNIFORM), Int("n", {1, 1000})});
  v1::Assignment lr, n;
  lr.set_name("lr");
  lr.set_number(0.01);
  n.set_name("n");
  n.set_integer(100);
  const Point from = *space.Encode({lr, n});
  std::set<double> rates;
  std::set<int64_t> numbers;
  Rng rng(4);
  for (int i = 0; i < 100; ++i) {
    const auto to = space.Decode(Perturb(space, from, std::nullopt, rng));
    rates.insert(to[0].number());
    numbers.insert(to[1].integer());
  }
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_NEAR(*rates.begin(), 0.008, 1e-12);
  EXPECT_NEAR(*rates.rbegin(), 0.012, 1e-12);
  EXPECT_EQ(numbers, (std::set<int64_t>{80, 120}));
}

TEST(Perturb, TurnsBackAtTheEnds) {
  const Space space = Make({Double("a", {1, 2}), Int("n", {1, 4}), Discrete("d", {0, 10})});
  Rng rng(5);
  for (int i = 0; i < 50; ++i) {
    const auto high = space.Decode(Perturb(space, space.Canonical({1, 1, 1}), std::nullopt, rng));
    EXPECT_NEAR(high[0].number(), 1.6, 1e-12);
    EXPECT_EQ(high[1].integer(), 3);
    EXPECT_EQ(high[2].integer(), 0);
    const auto low = space.Decode(Perturb(space, space.Canonical({0, 0, 0}), std::nullopt, rng));
    EXPECT_NEAR(low[0].number(), 1.2, 1e-12);
    EXPECT_EQ(low[1].integer(), 2);
    EXPECT_EQ(low[2].integer(), 10);
  }
}

TEST(Perturb, ACategoryBecomesAnyOtherAQuarterOfTheTime) {
  const Space space = Make({Categorical("c", {"x", "y", "z"})});
  std::map<double, int> counts;
  Rng rng(6);
  for (int i = 0; i < 4000; ++i) ++counts[Perturb(space, {1}, std::nullopt, rng)[0]];
  EXPECT_NEAR(counts[1], 3000, 150);
  EXPECT_NEAR(counts[0], 500, 100);
  EXPECT_NEAR(counts[2], 500, 100);
}

TEST(Perturb, ResamplesWithItsProbability) {
  const Space space = Make({Double("a", {1, 2})});
  Rng rng(7);
  int anew = 0;
  for (int i = 0; i < 2000; ++i) {
    const double to = space.Decode(Perturb(space, {0.5}, 0.3, rng))[0].number();
    anew += std::abs(to - 1.2) > 1e-9 && std::abs(to - 1.8) > 1e-9 ? 1 : 0;
  }
  EXPECT_NEAR(anew, 600, 80);
}

}  // namespace
}  // namespace shirabe::suggestion
