// The operators of evolution, who survives, and what is particular to nsga2 and de. What holds for
// every algorithm is in tests/contract/algorithm_contract_test.cc.
#include "suggestion/evolution/evolution_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "suggestion/evolution/evolution_operators.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TrialSummary CompletedEvolution(double loss) {
  return {.state = TrialState::kCompleted, .loss = loss};
}

std::vector<int64_t> TrialsOf(const std::vector<Individual>& individuals) {
  std::vector<int64_t> trials;
  for (const Individual& individual : individuals) trials.push_back(individual.trial);
  return trials;
}

TEST(SimulatedBinary, ChildrenSurroundTheParentsWithinTheBounds) {
  Rng rng(1);
  double sum = 0;
  int near = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const auto [low, high] = SimulatedBinary(0.6, 0.4, rng);
    ASSERT_TRUE(low >= 0 && low <= high && high <= 1);
    sum += low + high;
    near += std::abs(low - 0.4) < 0.02 ? 1 : 0;
  }
  EXPECT_NEAR(sum / (2 * kDraws), 0.5, 0.002);  // the mean of the parents
  EXPECT_GT(near, kDraws * 8 / 10);             // η = 20 stays close
}

TEST(SimulatedBinary, ParentsAtTheBoundsHaveChildrenWithin) {
  Rng rng(2);
  for (int i = 0; i < 2000; ++i) {
    const auto [low, high] = SimulatedBinary(0, 1, rng);
    ASSERT_TRUE(low >= 0 && high <= 1);
  }
  EXPECT_EQ(SimulatedBinary(0.3, 0.3, rng), std::make_pair(0.3, 0.3));
}

TEST(PolynomialMutation, IsSmallAndStaysWithinTheBounds) {
  Rng rng(3);
  for (const double x : {0.0, 0.01, 0.5, 0.99, 1.0}) {
    double distance = 0;
    for (int i = 0; i < 5000; ++i) {
      const double mutant = PolynomialMutation(x, rng);
      ASSERT_TRUE(mutant >= 0 && mutant <= 1);
      distance += std::abs(mutant - x) / 5000;
    }
    EXPECT_GT(distance, 0.005);
    EXPECT_LT(distance, 0.06);  // about 1/η
  }
}

TEST(Dominates, ViolationComesFirstAndThenEveryLoss) {
  const Individual good{.losses = {1, 2}}, other{.losses = {2, 1}}, worse{.losses = {2, 2}};
  const Individual violating{.losses = {0, 0}, .violation = 0.5};
  const Individual failed{.losses = {0, 0}, .violation = 1};
  EXPECT_TRUE(Dominates(good, worse));
  EXPECT_FALSE(Dominates(worse, good));
  EXPECT_FALSE(Dominates(good, other) || Dominates(other, good));
  EXPECT_FALSE(Dominates(good, good));
  EXPECT_TRUE(Dominates(worse, violating));
  EXPECT_TRUE(Dominates(violating, failed));
}

TEST(Survivors, OfOneLossAreTheBestInOrder) {
  std::vector<Individual> individuals;
  const double losses[] = {5, 1, 3, 1, 4, 2};
  for (int i = 0; i < 6; ++i) individuals.push_back({.trial = i, .losses = {losses[i]}});
  individuals[1].violation = 1;
  EXPECT_THAT(TrialsOf(Survivors(individuals, 4)), ElementsAre(3, 5, 2, 4));
  EXPECT_THAT(TrialsOf(Survivors(individuals, 99)), ElementsAre(3, 5, 2, 4, 0, 1));
}

TEST(Survivors, OfTwoLossesKeepTheFrontAndItsLonelyOnes) {
  // The front is (0,4) (1,2) (1.1,1.9) (4,0); the rest is dominated.
  const std::vector<std::vector<double>> losses = {{1, 2}, {0, 4}, {1.1, 1.9},
                                                   {4, 0}, {4, 4}, {2, 3}};
  std::vector<Individual> individuals;
  for (size_t i = 0; i < losses.size(); ++i) {
    individuals.push_back({.trial = static_cast<int64_t>(i), .losses = losses[i]});
  }
  const std::vector<int64_t> three = TrialsOf(Survivors(individuals, 3));
  EXPECT_THAT(std::set<int64_t>(three.begin(), three.end()), ElementsAre(1, 2, 3));
  EXPECT_THAT(TrialsOf(Survivors(individuals, 5)).back(), 5);
}

// The sorts against the definition: front 0 is who is dominated by nobody.
TEST(Survivors, TheFirstFrontIsWhoNobodyDominates) {
  Rng rng(5);
  for (int round = 0; round < 100; ++round) {
    std::vector<Individual> all;
    const auto losses = 1 + rng.Below(3);
    for (int i = 0; i < 40; ++i) {
      Individual individual{.trial = i, .violation = rng.Below(4) == 0 ? 1.0 : 0.0};
      for (uint64_t k = 0; k < losses; ++k) {
        individual.losses.push_back(static_cast<double>(rng.Below(6)));
      }
      all.push_back(individual);
    }
    std::set<int64_t> first;
    for (const Individual& a : all) {
      bool dominated = false;
      for (const Individual& b : all) dominated |= Dominates(b, a);
      if (!dominated) first.insert(a.trial);
    }
    const std::vector<int64_t> best = TrialsOf(Survivors(all, first.size()));
    EXPECT_EQ(std::set<int64_t>(best.begin(), best.end()), first);
  }
}

TEST(EndedIndividuals, StoppedEarlyIsBehindCompletedAndBeforeFailed) {
  const Space space = Make({Double("x", {0, 1})});
  History history(space);
  const auto add = [&](const TrialSummary& view) {
    history.Add({0.1 * static_cast<double>(history.size())}, view);
  };
  add({.state = TrialState::kInfeasible});
  add({.state = TrialState::kCompleted, .early_stopped = true, .loss = 0, .last_step = 3});
  add({.state = TrialState::kCompleted, .early_stopped = true, .loss = 1, .last_step = 9});
  add(CompletedEvolution(100));
  add(TrialSummary{});
  add(CompletedEvolution(std::nan("")));
  add(CompletedEvolution(-kInfinity));
  EXPECT_THAT(TrialsOf(Survivors(EndedIndividuals(history), 9)), ElementsAre(3, 2, 1, 0, 5, 6));
}

Proposal AskEvolution(const std::string& name, const History& history, int count) {
  const auto algorithm = CreateAlgorithm(name, {.space = history.space(), .max_trials = 100});
  EXPECT_TRUE(algorithm.ok()) << algorithm.status();
  return *(*algorithm)->Propose(history, count, Rng(1));
}

std::vector<Suggestion> Suggestions(const std::string& name, const History& history, int count) {
  return AskEvolution(name, history, count).suggestions;
}

// Runs an experiment, `parallel` trials at a time, and gives the best loss.
template <class Loss>
double Minimize(const std::string& name, const Space& space, int trials, Loss loss) {
  constexpr int kParallel = 4;
  const auto algorithm = *CreateAlgorithm(name, {.space = space, .max_trials = trials});
  History history(space);
  double best = kInfinity;
  while (history.size() < trials) {
    const Proposal proposal = *algorithm->Propose(history, kParallel, Rng(3));
    for (const Suggestion& s : proposal.suggestions) {
      history.Add(s.point, CompletedEvolution(loss(s.point)));
      history.SetLabels(history.size() - 1, s.labels);
      best = std::min(best, loss(s.point));
    }
  }
  return best;
}

TEST(Evolution, FindsTheMinimumOfAMixedSpace) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1}), Int("n", {1, 9}),
                            Categorical("c", {"p", "q", "r", "s"})});
  const auto loss = [&](const Point& x) {
    const double n = space.axis(2).Coordinate(6);
    return std::pow(x[0] - 0.3, 2) + std::pow(x[1] - 0.8, 2) + std::pow(x[2] - n, 2) +
           (x[3] == 2 ? 0 : 0.1);
  };
  const double random = Minimize("random", space, 300, loss);
  for (const char* name : {"de", "nsga2"}) {
    const double best = Minimize(name, space, 300, loss);
    EXPECT_LT(best, 1e-3) << name;
    EXPECT_LT(best, random / 3) << name;
  }
}

TEST(Evolution, ThePopulationIsTheRootOfTheTrialsUnlessItIsGiven) {
  const Space space = Make({Double("x", {0, 1})});
  EXPECT_EQ(PopulationSize({.space = space, .max_trials = 400}), 20);
  EXPECT_EQ(PopulationSize({.space = space, .max_trials = 10}), 8);
  EXPECT_EQ(PopulationSize({.space = space, .max_trials = int64_t{1} << 60}), 1000);
  EXPECT_EQ(PopulationSize({.space = space}), 20);
  EXPECT_EQ(PopulationSize({.space = space, .settings = {{"population_size", "33"}}}), 33);
  const auto three =
      CreateAlgorithm("de", {.space = space, .settings = {{"population_size", "3"}}});
  EXPECT_THAT(Message(three.status()), HasSubstr("it must be within 4 … 1000"));
}

TEST(ControlParameters, ReadsWhatItWritesAndNothingElse) {
  const ControlParameters control{.slot = 7, .f = 0.1 + 0.2, .cr = 1};
  const auto read = ControlParameters::Decode(control.Encode(), 8);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->slot, 7);
  EXPECT_EQ(read->f, control.f);
  EXPECT_EQ(read->cr, 1);
  for (const char* text :
       {"", "7", "7 0.5", "7 0.5 0.5 1", "8 0.5 0.5", "-1 0.5 0.5", "0.5 0.5 0.5", "7 nan 0.5",
        "7 1.5 0.5", "7 0.5 -1", "x y z", "1e300 0.5 0.5"}) {
    EXPECT_FALSE(ControlParameters::Decode(text, 8)) << text;
  }
}

class SuccessHistoryTest : public ::testing::Test {
 protected:
  void Add(double loss, const ControlParameters* control = nullptr) {
    history_.Add({0.001 * static_cast<double>(history_.size())}, CompletedEvolution(loss));
    if (control) {
      history_.SetLabels(history_.size() - 1, {{ControlParameters::kLabel, control->Encode()}});
    }
  }

  History history_{Make({Double("x", {0, 1})})};
};

TEST_F(SuccessHistoryTest, AChildTakesTheSlotThatItChallenged) {
  for (double loss : {4, 3, 2, 1}) Add(loss);
  const ControlParameters first{.slot = 0}, last{.slot = 3};
  Add(3.5, &first);  // better than trial 0
  Add(1.5, &last);   // not better than trial 3
  const SuccessHistory past(history_, 4);
  EXPECT_EQ(past.occupant(0), 4);
  EXPECT_EQ(past.occupant(3), 3);
  EXPECT_THAT(past.ranked(), ElementsAre(3, 2, 1, 4));
  EXPECT_THAT(past.archive(), ElementsAre(0));
  EXPECT_EQ(past.NextSlot(), 1);
}

TEST_F(SuccessHistoryTest, TrialsWithoutALabelReplaceTheWorst) {
  for (double loss : {4, 3, 2, 1}) Add(loss);
  Add(0.5);
  Add(9);
  const ControlParameters broken{.slot = 17};
  Add(0.7, &broken);
  EXPECT_THAT(SuccessHistory(history_, 4).ranked(), ElementsAre(4, 6, 3, 2));
}

TEST_F(SuccessHistoryTest, PendingTrialsCountAsChallengersAndHoldNothing) {
  for (double loss : {4, 3, 2, 1}) Add(loss);
  const ControlParameters first{.slot = 0};
  history_.Add({0.9}, TrialSummary{});
  history_.SetLabels(4, {{ControlParameters::kLabel, first.Encode()}});
  SuccessHistory past(history_, 4);
  EXPECT_EQ(past.occupant(0), 0);
  EXPECT_EQ(past.NextSlot(), 1);
  past.Challenge(1);
  EXPECT_EQ(past.NextSlot(), 2);
}

TEST_F(SuccessHistoryTest, WhatSucceedsIsDrawnMore) {
  for (double loss : {8, 8, 8, 8}) Add(loss);
  double loss = 7;
  for (int generation = 0; generation < 6; ++generation) {  // fills the memory
    for (int slot = 0; slot < 4; ++slot) {
      const ControlParameters winner{.slot = slot, .f = 0.9, .cr = 0.1};
      Add(loss -= 0.1, &winner);
    }
  }
  const SuccessHistory past(history_, 4);
  Rng rng(1);
  double f = 0, cr = 0;
  for (int i = 0; i < 1000; ++i) {
    const ControlParameters control = past.Draw(0, rng);
    ASSERT_TRUE(control.f > 0 && control.f <= 1 && control.cr >= 0 && control.cr <= 1);
    f += control.f / 1000;
    cr += control.cr / 1000;
  }
  EXPECT_GT(f, 0.75);
  EXPECT_LT(cr, 0.2);
}

TEST(De, ARestartOrAnotherOrderOfResultsLosesNothing) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  History history(space);
  Proposal proposal = AskEvolution("de", history, 30);
  for (const Suggestion& s : proposal.suggestions) history.Add(s.point, TrialSummary{});
  for (int i = 29; i >= 0; --i) history.Update(i, CompletedEvolution(history.coordinate(i, 0)));
  History forwards(space);
  for (int i = 0; i < 30; ++i) forwards.Add(history.point(i), history.trial(i));
  EXPECT_EQ(AskEvolution("de", history, 3).suggestions[2].point,
            AskEvolution("de", forwards, 3).suggestions[2].point);
}

TEST(De, ChallengersSpreadOverTheSlots) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  History history(space);
  for (const Suggestion& s : Suggestions("de", history, 10)) {
    history.Add(s.point, CompletedEvolution(s.point[0]));
  }
  std::set<int> slots;
  for (const Suggestion& s : Suggestions("de", history, 10)) {
    ASSERT_EQ(s.labels.size(), 1u);
    const auto control = ControlParameters::Decode(s.labels[0].second, 10);
    ASSERT_TRUE(control);
    slots.insert(control->slot);
    EXPECT_THAT(s.explanation, HasSubstr("moved towards one of the best"));
  }
  EXPECT_EQ(slots.size(), 10u);
}

TEST(Nsga2, SaysWhoTheParentsAre) {
  const Space space = Make({Double("x", {0, 1}), Categorical("c", {"a", "b"})});
  History history(space);
  for (const Suggestion& s : Suggestions("nsga2", history, 10)) {
    history.Add(s.point, CompletedEvolution(s.point[0]));
  }
  EXPECT_THAT(AskEvolution("nsga2", history, 1).suggestions[0].explanation,
              HasSubstr("a child of trials"));
}

}  // namespace
}  // namespace shirabe::suggestion
