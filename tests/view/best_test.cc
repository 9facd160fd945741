#include "view/best_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/records.h"

namespace shirabe::view {
namespace {

v1::Experiment WithBest() {
  v1::Experiment experiment = MakeExperiment();
  SetBest(MakeTrial(17, v1::TRIAL_SUCCEEDED, 0.2148, {.opt = "it's, \"adam\""}), experiment);
  return experiment;
}

TEST(BestTest, TheJsonIsWhatScriptsRelyOn) {
  EXPECT_EQ(PrintJsonLine(BestJson(WithBest())),
            R"({"trial":"digits-17","objective":"loss","value":0.2148,"step":2,)"
            R"("assignments":{"lr":0.0031,"bs":32,"opt":"it's, \"adam\""}})");
}

TEST(BestTest, ATableHasOneRow) {
  EXPECT_EQ(BestTable(WithBest(), true),
            "TRIAL       loss     STEP   lr       bs   opt\n"
            "digits-17   0.2148   2      0.0031   32   it's, \"adam\"\n");
  EXPECT_EQ(BestTable(WithBest(), false),
            "digits-17   0.2148   2   0.0031   32   it's, \"adam\"\n");
}

TEST(BestTest, ArgumentsAndVariablesAreQuotedForAShell) {
  EXPECT_EQ(BestArguments(WithBest()), "--lr=0.0031 --bs=32 --'opt=it'\\''s, \"adam\"'\n");
  EXPECT_EQ(BestVariables(WithBest()),
            "SHIRABE_PARAM_LR=0.0031\n"
            "SHIRABE_PARAM_BS=32\n"
            "SHIRABE_PARAM_OPT='it'\\''s, \"adam\"'\n");
}

v1::Experiment WithAnotherRecommended() {
  v1::Experiment experiment = WithBest();
  v1::RecommendedTrial& recommended =
      *experiment.mutable_status()->mutable_shirabe()->mutable_recommended_trial();
  recommended.set_trial_name("digits-9");
  recommended.set_number(9);
  recommended.set_predicted(0.25);
  recommended.set_deviation(0.01);
  recommended.set_reason("the best was lucky");
  AddAssignments({.lr = 0.01}, *recommended.mutable_parameter_assignments());
  return experiment;
}

// As in Katib's examples.
TEST(BestTest, ANameWithDashesGetsNoOthers) {
  v1::Experiment experiment = WithBest();
  v1::OptimalTrial& best = *experiment.mutable_status()->mutable_current_optimal_trial();
  best.mutable_parameter_assignments(0)->set_name("--lr");
  EXPECT_EQ(BestArguments(experiment), "--lr=0.0031 --bs=32 --'opt=it'\\''s, \"adam\"'\n");
}

TEST(BestTest, TellsOfARecommendedTrialAndCanPrintIt) {
  const v1::Experiment experiment = WithAnotherRecommended();
  EXPECT_EQ(RecommendedLine(WithBest()), "");
  EXPECT_EQ(RecommendedLine(experiment),
            "trial digits-9, predicted 0.25 ± 0.01: the best was lucky");
  EXPECT_EQ(PrintJsonLine(BestJson(experiment)["recommended"]),
            R"({"trial":"digits-9","value":0.25,"deviation":0.01,"reason":"the best was lucky",)"
            R"("assignments":{"lr":0.01,"bs":32,"opt":"sgd"}})");
  EXPECT_EQ(BestTable(experiment, false), BestTable(WithBest(), false));
  const v1::Experiment instead = WithRecommended(experiment);
  EXPECT_EQ(BestArguments(instead), "--lr=0.01 --bs=32 --opt=sgd\n");
  EXPECT_EQ(BestTable(instead, false), "digits-9   0.25   -   0.01   32   sgd\n");
  EXPECT_EQ(PrintJsonLine(BestJson(instead)),
            R"({"trial":"digits-9","objective":"loss","value":0.25,"step":null,)"
            R"("assignments":{"lr":0.01,"bs":32,"opt":"sgd"}})");
  EXPECT_EQ(BestTable(WithRecommended(WithBest()), true), BestTable(WithBest(), true));
}

TEST(BestTest, QuotesOnlyWhereNeeded) {
  EXPECT_EQ(ShellQuote("a/b-c_d.e:f=1e-5"), "a/b-c_d.e:f=1e-5");
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("a b"), "'a b'");
  EXPECT_EQ(ShellQuote("$HOME;`x`"), "'$HOME;`x`'");
  EXPECT_EQ(ShellQuote("{lr}"), "'{lr}'");
}

TEST(BestTest, SaysWhyThereIsNone) {
  v1::Experiment experiment = MakeExperiment();
  SetCondition("Running", experiment);
  experiment.mutable_status()->set_trials(3);
  const Status status = CheckHasBest(experiment);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(
      Message(status),
      "experiment digits (Running) has no best trial: none of its 3 trials has ended well with "
      "a finite \"loss\"");
  EXPECT_TRUE(CheckHasBest(WithBest()).ok());
}

}  // namespace
}  // namespace shirabe::view
