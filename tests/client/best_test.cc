#include "client/best.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/records.h"

namespace shirabe::client {
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
  EXPECT_EQ(Message(status),
            "experiment digits (Running) has no best trial: none of its 3 trials has reported a "
            "finite \"loss\"");
  EXPECT_TRUE(CheckHasBest(WithBest()).ok());
}

}  // namespace
}  // namespace shirabe::client
