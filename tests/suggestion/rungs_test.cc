// Successive halving: hyperband, asha and bohb. What holds for every algorithm is in
// tests/contract/algorithm_contract_test.cc.
#include "suggestion/multifidelity/rung_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "suggestion/multifidelity/rung_ledger.h"
#include "tests/suggestion/crew.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Counts = std::map<int64_t, int>;

constexpr int kRungsEpochs = 1;  // the axis of the resource in Katib's example

// The parameters of Katib's own hyperband example, whose resource is fixed at 20.
Space KatibSpace() {
  return Make({Double("lr", {0.01, 0.03}), Int("num-epochs", {20, 20}),
               Categorical("optimizer", {"sgd", "adam", "ftrl"})});
}

Problem KatibProblem(Settings more = {}, int64_t max_trials = 0) {
  Problem problem{.space = KatibSpace(), .settings = {{"resource_name", "num-epochs"}}};
  problem.max_trials = max_trials;
  problem.settings.insert(problem.settings.end(), more.begin(), more.end());
  return problem;
}

int64_t EpochsOf(const Crew& crew, const Suggestion& suggestion) {
  return crew.history().space().Decode(suggestion.point)[kRungsEpochs].integer();
}

TrialSummary Lost(double loss) { return {.state = TrialState::kCompleted, .loss = loss}; }

// The loss is lr's coordinate, the same on every rung; a trial takes the epochs that its parent
// has not made.
Crew::Work Honest(const Crew& crew, const Suggestion& suggestion) {
  return {.time = EpochsOf(crew, suggestion), .result = Lost(suggestion.point[0])};
}

std::string ErrorOf(const std::string& name, const Problem& problem) {
  return Message(CreateAlgorithm(name, problem).status());
}

TEST(Rungs, AreCountedInIntegers) {
  // Katib and Syne Tune give 243 five rungs, Katib gives 1000 by tens three.
  EXPECT_THAT(RungTable(243, 1, 3), ElementsAre(1, 3, 9, 27, 81, 243));
  EXPECT_THAT(RungTable(1000, 1, 10), ElementsAre(1, 10, 100, 1000));
  EXPECT_THAT(RungTable(125, 1, 5), ElementsAre(1, 5, 25, 125));
  EXPECT_EQ(RungTable(int64_t{1} << 53, 1, 2).size(), 54u);
  for (int64_t eta : {2, 3, 4, 5, 7, 10}) {
    for (int64_t power = eta, n = 2; power < (int64_t{1} << 53) / eta; power *= eta, ++n) {
      EXPECT_EQ(RungTable(power, 1, eta).size(), static_cast<size_t>(n)) << power;
      EXPECT_EQ(RungTable(power - 1, 1, eta).size(), static_cast<size_t>(n - 1)) << power - 1;
    }
  }
}

TEST(Rungs, EndExactlyAtTheTopAndNeverBelowTheLeast) {
  EXPECT_THAT(RungTable(100, 1, 3), ElementsAre(1, 3, 11, 33, 100));
  EXPECT_THAT(RungTable(100, 4, 3), ElementsAre(11, 33, 100));
  EXPECT_THAT(RungTable(81, 81, 3), ElementsAre(81));
}

TEST(Rungs, TheResourceFollowsThemWhateverItsFeasibleSpaceSays) {
  const Problem problem = KatibProblem({{"eta", "3"}, {"r_l", "9"}});
  for (const char* name : {"hyperband", "asha"}) {
    const auto space = SearchSpace(name, problem);
    ASSERT_TRUE(space.ok()) << space.status();
    ASSERT_EQ(space->axis(kRungsEpochs).levels(), 3u);
    EXPECT_EQ(space->Decode({0, 0, 0})[kRungsEpochs].integer(), 1);
    EXPECT_EQ(space->Decode({0, 1, 0})[kRungsEpochs].integer(), 9);
    // Reshaping what has been reshaped changes nothing, with or without r_l.
    const auto again = SearchSpace(name, {.space = *space, .settings = problem.settings});
    EXPECT_EQ(again->axis(kRungsEpochs).levels(), 3u);
    const auto by_default = SearchSpace(name, {*space, {{"resource_name", "num-epochs"}}});
    EXPECT_EQ(by_default->axis(kRungsEpochs).levels(), 3u);
  }
}

TEST(Rungs, WithoutALimitTheTopIsTheEndOfTheFeasibleSpace) {
  const Space space = Make({Double("lr", {0, 1}), Double("trees", {1, 81.5})});
  const auto searched = SearchSpace("asha", {space, {{"resource_name", "trees"}}});
  ASSERT_TRUE(searched.ok()) << searched.status();
  EXPECT_EQ(searched->Decode({0, 1})[1].integer(), 81);
  EXPECT_EQ(searched->axis(1).levels(), 5u);
}

TEST(Rungs, WrongSettingsAreRefusedByName) {
  const Problem none{.space = KatibSpace()};
  EXPECT_THAT(ErrorOf("hyperband", none), HasSubstr("resource_name is missing; give the name"));
  const Problem misspelt{KatibSpace(), {{"resource_name", "num-epoch"}}};
  EXPECT_THAT(ErrorOf("hyperband", misspelt), HasSubstr("did you mean \"num-epochs\"?"));
  const Problem category{KatibSpace(), {{"resource_name", "optimizer"}}};
  EXPECT_THAT(ErrorOf("asha", category), HasSubstr("\"optimizer\" is categorical; give an int"));
  const Problem alone{Make({Int("n", {1, 9})}), {{"resource_name", "n"}}};
  EXPECT_THAT(ErrorOf("asha", alone), HasSubstr("the only parameter; give another one to tune"));
  EXPECT_THAT(
      ErrorOf("hyperband", KatibProblem({{"r_l", "2"}})),
      HasSubstr("leaves one rung, from which nothing is promoted; raise r_l to at least 3"));
  for (const double max : {0.5, 1.0}) {
    const Problem fraction{Make({Int("n", {1, 9}), Double("x", {0, max})}),
                           {{"resource_name", "x"}}};
    EXPECT_THAT(
        ErrorOf("hyperband", fraction),
        HasSubstr("\"x\" is not of type int; give a parameter that is, such as epochs: r_l"));
  }
  EXPECT_THAT(ErrorOf("hyperband", KatibProblem({{"eta", "1"}})), HasSubstr("eta"));
  EXPECT_THAT(ErrorOf("hyperband", KatibProblem({{"etta", "3"}})), HasSubstr("did you mean"));
  EXPECT_THAT(ErrorOf("asha", KatibProblem({{"r_l", "9"}, {"max_resource", "27"}})),
              HasSubstr("r_l 9 and max_resource 27 are two names for one setting; remove one"));
  EXPECT_EQ(ErrorOf("asha", KatibProblem({{"max_resource", "16"}, {"reduction_factor", "4"}})), "");
}

TEST(Rungs, BracketsHaveTheSizesOfThePaper) {
  // Table 1 of the paper: R = 81, η = 3.
  const Problem problem{Make({Double("lr", {0, 1}), Int("n", {1, 81})}),
                        {{"resource_name", "n"}, {"r_l", "81"}, {"eta", "3"}}};
  const Rungs rungs = *Rungs::Create(problem);
  EXPECT_EQ(rungs.BracketSize(4), 81);
  EXPECT_EQ(rungs.BracketSize(3), 34);
  EXPECT_EQ(rungs.BracketSize(2), 15);
  EXPECT_EQ(rungs.BracketSize(1), 8);
  EXPECT_EQ(rungs.BracketSize(0), 5);
  EXPECT_EQ(rungs.BracketTrials(81, 4), 81 + 27 + 9 + 3 + 1);
}

// ---- hyperband ----------------------------------------------------------------------------------

// How many trials of each resource the first `brackets` brackets made.
std::vector<Counts> CountsByBracket(const Crew& crew, int brackets) {
  std::vector<Counts> counts(brackets);
  for (int64_t i = 0; i < crew.history().size(); ++i) {
    const int bracket = std::stoi(*crew.history().label(i, "bracket"));
    if (bracket < brackets) ++counts[bracket][EpochsOf(crew, crew.made()[i])];
  }
  return counts;
}

TEST(Hyperband, MakesTheBracketsOfThePaperWithAnyNumberOfWorkers) {
  for (const int workers : {1, 2, 3, 4, 7, 9, 16, 40}) {
    SCOPED_TRACE(workers);
    Crew crew("hyperband", KatibProblem({{"r_l", "9"}}, 13 + 6 + 3));
    crew.Run(workers, 13 + 6 + 3, Honest);
    EXPECT_THAT(CountsByBracket(crew, 3), ElementsAre(Counts{{1, 9}, {3, 3}, {9, 1}},
                                                      Counts{{3, 5}, {9, 1}}, Counts{{9, 3}}));
  }
}

TEST(Hyperband, PromotesExactlyTheBestEachOnceFromItsParent) {
  Crew crew("hyperband", KatibProblem({{"r_l", "27"}}, 40));
  crew.Run(5, 40, Honest);
  std::map<int64_t, std::vector<double>> losses;  // of bracket 0, by resource
  std::map<int64_t, std::vector<double>> promoted;
  std::set<int64_t> parents;
  for (int64_t i = 0; i < crew.history().size(); ++i) {
    const Suggestion& made = crew.made()[i];
    const int64_t epochs = EpochsOf(crew, made);
    losses[epochs].push_back(made.point[0]);
    if (!made.parent) continue;
    const int64_t parent = made.parent->trial() - 1;
    EXPECT_TRUE(parents.insert(parent).second) << "promoted twice";
    EXPECT_EQ(epochs, 3 * EpochsOf(crew, crew.made()[parent]));
    EXPECT_EQ(made.point[0], crew.made()[parent].point[0]);
    EXPECT_EQ(made.point[2], crew.made()[parent].point[2]);
    EXPECT_EQ(crew.history().label(i, "promoted-from"), std::to_string(parent + 1));
    promoted[epochs / 3].push_back(made.point[0]);
  }
  for (auto& [epochs, of_rung] : losses) {
    std::sort(of_rung.begin(), of_rung.end());
    std::sort(promoted[epochs].begin(), promoted[epochs].end());
    of_rung.resize(of_rung.size() / 3);
    EXPECT_EQ(promoted[epochs], of_rung) << epochs;
  }
}

// Katib ends the experiment unless every trial of a rung succeeds.
TEST(Hyperband, AFailedTrialIsTheWorstAndStopsNobody) {
  Crew crew("hyperband", KatibProblem({{"r_l", "9"}}, 13));
  crew.Run(4, 13, [](const Crew& of, const Suggestion& suggestion) {
    Crew::Work work = Honest(of, suggestion);
    if (of.history().size() % 2 == 0) work.result.state = TrialState::kInfeasible;
    if (of.history().size() == 3) work.result.loss = std::numeric_limits<double>::quiet_NaN();
    if (of.history().size() == 5) work.result.early_stopped = true;
    return work;
  });
  EXPECT_GT(crew.history().size(), 9);
  for (const Suggestion& made : crew.made()) {
    if (!made.parent) continue;
    const TrialSummary& parent = crew.history().trial(made.parent->trial() - 1);
    EXPECT_EQ(parent.state, TrialState::kCompleted);
    EXPECT_TRUE(std::isfinite(parent.loss));
    EXPECT_FALSE(parent.early_stopped);
  }
}

TEST(Hyperband, ARungOfFailuresEndsItsBracketAndTheNextOneBegins) {
  Crew crew("hyperband", KatibProblem({{"r_l", "9"}}));
  crew.Run(3, 30, [](const Crew& of, const Suggestion& suggestion) {
    Crew::Work work = Honest(of, suggestion);
    if (EpochsOf(of, suggestion) == 1) work.result.state = TrialState::kInfeasible;
    return work;
  });
  const auto counts = CountsByBracket(crew, 3);
  EXPECT_THAT(counts[0], ElementsAre(Pair(1, 9)));
  EXPECT_THAT(counts[1], ElementsAre(Pair(3, 5), Pair(9, 1)));
  EXPECT_EQ(crew.history().size(), 30);
}

// Two of nine are left: they alone can enter the next rung, and nobody waits there for a third.
TEST(Hyperband, NobodyWaitsForWhatFailedBelow) {
  Crew crew("hyperband", KatibProblem({{"r_l", "9"}}, 13));
  crew.Run(1, 12, [](const Crew& of, const Suggestion& suggestion) {
    Crew::Work work = Honest(of, suggestion);
    if (of.history().size() < 7) work.result.state = TrialState::kInfeasible;
    return work;
  });
  EXPECT_EQ(CountsByBracket(crew, 1)[0], (Counts{{1, 9}, {3, 2}, {9, 1}}));
  EXPECT_EQ(crew.history().size(), 12);
}

TEST(RungLedger, OfEqualTrialsTheOlderOneIsPromoted) {
  const Problem problem = KatibProblem({{"r_l", "9"}}, 13);
  const Rungs rungs = *Rungs::Create(problem);
  History history(*SearchSpace("hyperband", problem));
  for (int i = 0; i < 9; ++i) history.Add({0.1 * i, 0, 0}, Lost(i == 4 ? 1 : 0.5));
  RungLedger book(history, rungs, {{.first = 0, .planned = 9}});
  for (const int64_t parent : {1, 2, 3}) {
    const auto promoted = book.Promote(0, 0, 3);
    ASSERT_TRUE(promoted);
    EXPECT_EQ(promoted->parent->trial(), parent);
  }
  EXPECT_FALSE(book.Promote(0, 0, 3));
}

// Labels come from whoever asks, over Katib's wire: one that tells both, where a trial was promoted
// from and how large its bracket is, does not say where the bracket begins.
TEST(RungLedger, ABracketDoesNotBeginWhereATrialWasPromotedTo) {
  const Problem problem = KatibProblem({{"r_l", "9"}}, 13);
  const Rungs rungs = *Rungs::Create(problem);
  History history(*SearchSpace("hyperband", problem));
  history.Add({0.1, 0, 0}, Lost(1));
  history.Add({0.1, 0.5, 0}, Lost(1));
  history.SetLabels(1, {{"bracket", "0"}, {"bracket-size", "5"}, {"promoted-from", "1"}});
  const RungLedger book(history, rungs, {{.first = 0, .planned = 9}});
  EXPECT_EQ(book.brackets()[0].first, 0);
  EXPECT_EQ(book.brackets()[0].planned, 5);
  EXPECT_EQ(book.brackets()[0].cells[1].entered, 1);
}

// With 7 of 9 results in and 3 to be promoted, no two unknown ones can keep the best out.
TEST(Hyperband, PromotesAsSoonAsItIsCertainAndNotBefore) {
  const Problem problem = KatibProblem({{"r_l", "9"}}, 13);
  const auto hyperband = *CreateAlgorithm("hyperband", problem);
  History history(*SearchSpace("hyperband", problem));
  const auto first = hyperband->Propose(history, 64, Rng(1));
  ASSERT_EQ(first->suggestions.size(), 9u) << "4 of 13 are kept for promotions";
  for (const Suggestion& suggestion : first->suggestions) {
    history.Add(suggestion.point, {});
    history.SetLabels(history.size() - 1, suggestion.labels);
  }
  for (int ended = 1; ended <= 9; ++ended) {
    history.Update(ended - 1, Lost(10 - ended));
    const auto proposal = hyperband->Propose(history, 64, Rng(1));
    EXPECT_EQ(static_cast<int>(proposal->suggestions.size()), std::max(0, ended - 6)) << ended;
    if (ended < 7) {
      EXPECT_EQ(proposal->outcome, Proposal::Outcome::kWait);
      EXPECT_THAT(proposal->reason, HasSubstr("what is promoted next"));
    } else {
      EXPECT_EQ(proposal->suggestions[0].parent->trial(), ended) << "the best so far";
    }
  }
}

TEST(Hyperband, WhereTrialsAreFewItMakesABracketThatFits) {
  for (const int64_t trials : {1, 2, 3, 4, 5, 8, 12, 13, 14, 20, 50}) {
    SCOPED_TRACE(trials);
    Crew crew("hyperband", KatibProblem({{"r_l", "243"}}, trials));
    crew.Run(4, trials, Honest);
    EXPECT_EQ(crew.history().size(), trials);
    EXPECT_GE(CountByResource(crew.history(), kRungsEpochs)[243], 1) << "one is trained to the end";
  }
}

TEST(Hyperband, StartPointsTakePartInTheFirstBracket) {
  Crew crew("hyperband", KatibProblem({{"r_l", "9"}}, 13));
  crew.AddForeign({0.0, 0.0, 0}, Lost(-1));  // the best of all, on the lowest rung
  crew.AddForeign({0.5, 0.0, 0}, Lost(0.5));
  const auto proposal = crew.algorithm().Propose(crew.history(), 64, Rng(1));
  EXPECT_EQ(proposal->suggestions.size(), 7u);
  History history = crew.history();
  for (const Suggestion& suggestion : proposal->suggestions) {
    history.Add(suggestion.point, Lost(0.9));
    history.SetLabels(history.size() - 1, suggestion.labels);
  }
  const auto next = crew.algorithm().Propose(history, 64, Rng(1));
  ASSERT_EQ(next->suggestions.size(), 3u);
  EXPECT_EQ(next->suggestions[0].parent->trial(), 1);
  EXPECT_EQ(next->suggestions[1].parent->trial(), 2);
}

TEST(Hyperband, ALimitRaisedLaterIsUsed) {
  Crew crew("hyperband", KatibProblem({{"r_l", "9"}}, 13));
  crew.Run(4, 40, Honest);
  EXPECT_EQ(crew.history().size(), 40);
}

TEST(Hyperband, ABracketStaysAsItWasBegunWhenTheLimitIsRaised) {
  Crew crew("hyperband", KatibProblem({{"r_l", "9"}}, 6));  // five with 3 epochs, one with 9
  crew.Run(4, 3, Honest);
  const auto raised = *CreateAlgorithm("hyperband", KatibProblem({{"r_l", "9"}}, 100));
  const auto proposal = raised->Propose(crew.history(), 2, Rng(1));
  ASSERT_EQ(proposal->suggestions.size(), 2u);
  for (const Suggestion& made : proposal->suggestions) EXPECT_EQ(EpochsOf(crew, made), 3);
}

TEST(Hyperband, WhatIsPromotedSurvivesARestartAndIsNotPromotedAgain) {
  const Problem problem = KatibProblem({{"r_l", "9"}}, 13);
  Crew crew("hyperband", problem);
  crew.Run(9, 12, Honest);
  const auto again = (*CreateAlgorithm("hyperband", problem))->Propose(crew.history(), 9, Rng(1));
  ASSERT_EQ(again->suggestions.size(), 1u) << "the last of the bracket";
  EXPECT_THAT(again->suggestions[0].explanation,
              HasSubstr("promoted to rung 2 of 2, num-epochs=9: trial"));
}

// ---- asha ---------------------------------------------------------------------------------------

TEST(Asha, PromotesAThirdOfEachRungAndNeverWaits) {
  Crew crew("asha", KatibProblem({{"r_l", "27"}}, 400));
  crew.Run(8, 400, Honest);
  EXPECT_EQ(crew.waits(), 0);
  const Counts counts = CountByResource(crew.history(), kRungsEpochs);
  ASSERT_EQ(counts.size(), 4u);
  // Some of the early promotions turn out to be mistaken: of n trials about √n.
  for (const int64_t r : {1, 3, 9}) {
    EXPECT_GE(counts.at(3 * r), counts.at(r) / 3 - 1) << r;
    EXPECT_LE(counts.at(3 * r), counts.at(r) / 3.0 + 2 * std::sqrt(counts.at(r))) << r;
  }
}

TEST(Asha, NobodyIsPromotedBeforeAsManyAsEtaHaveEnded) {
  Crew crew("asha", KatibProblem({{"r_l", "9"}, {"eta", "4"}, {"min_resource", "2"}}));
  crew.Run(1, 9, Honest);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(crew.made()[i].parent) << i;
  ASSERT_TRUE(crew.made()[4].parent);
  const int64_t parent = crew.made()[4].parent->trial() - 1;
  for (int i = 0; i < 4; ++i) EXPECT_LE(crew.made()[parent].point[0], crew.made()[i].point[0]);
  EXPECT_FALSE(crew.made()[5].parent);
}

TEST(Asha, FailuresCountAsTheWorstOfTheirRung) {
  Crew crew("asha", KatibProblem({{"r_l", "9"}}));
  crew.Run(1, 5, [](const Crew& of, const Suggestion& suggestion) {
    Crew::Work work = Honest(of, suggestion);
    if (of.history().size() < 2) work.result.state = TrialState::kInfeasible;
    return work;
  });
  ASSERT_TRUE(crew.made()[3].parent) << "three have ended, one of them well";
  EXPECT_EQ(crew.made()[3].parent->trial(), 3);
}

TEST(Asha, BracketsBeginOnTheirRungsInHyperbandsShares) {
  Crew crew("asha", KatibProblem({{"r_l", "9"}, {"brackets", "3"}}));
  crew.Run(4, 300, Honest);
  std::map<std::string, int> begun;
  for (const Suggestion& made : crew.made()) {
    if (made.parent) continue;
    for (const auto& [name, value] : made.labels) {
      if (name == "bracket") ++begun[value];
    }
    EXPECT_NE(made.explanation.find("a random configuration"), std::string::npos);
  }
  EXPECT_NEAR(begun["0"] / 9.0, begun["1"] / 5.0, 1);
  EXPECT_NEAR(begun["1"] / 5.0, begun["2"] / 3.0, 1);
}

TEST(Asha, ASpaceOfFewConfigurationsEndsWithTheBestTrained) {
  for (const int workers : {1, 3}) {
    const Problem problem{Make({Int("n", {1, 2}), Int("epochs", {1, 9})}),
                          {{"resource_name", "epochs"}}};
    Crew crew("asha", problem);
    crew.Run(workers, 100, Honest);
    EXPECT_EQ(crew.exhausted(), 1);
    EXPECT_EQ(CountByResource(crew.history(), 1), (Counts{{1, 2}, {3, 1}, {9, 1}}));
    EXPECT_EQ(crew.made().back().point[0], crew.history().space().axis(0).Coordinate(0));
  }
}

}  // namespace
}  // namespace shirabe::suggestion
