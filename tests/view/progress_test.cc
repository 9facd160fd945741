#include "view/progress.h"

#include <gtest/gtest.h>

#include "client/local_client.h"
#include "tests/support/stored.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

TEST(ProgressTest, ShowsHowFarItIs) {
  Stored stored;
  stored.Put(MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5));
  stored.Put(MakeTrial(2, v1::TRIAL_RUNNING));
  stored.experiment.mutable_status()->set_trials_succeeded(1);
  stored.experiment.mutable_status()->set_trials_running(1);
  SetBest(MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5), stored.experiment);
  stored.PutExperiment();
  Progress progress(&stored.client(), stored.key());
  ASSERT_TRUE(progress.Update().ok());
  // 31 are left, two at a time, 60 s each.
  EXPECT_EQ(progress.Line(120),
            "[................] 1/32  running 1  best loss=0.5 (trial 1: lr=0.0031 bs=32 opt=sgd)"
            "  ETA 16m");
}

TEST(ProgressTest, FitsTheTerminal) {
  Stored stored;
  stored.Put(MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5));
  stored.experiment.mutable_status()->set_trials_succeeded(1);
  SetBest(MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5), stored.experiment);
  stored.PutExperiment();
  Progress progress(&stored.client(), stored.key());
  ASSERT_TRUE(progress.Update().ok());
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(DisplayWidth(progress.Line(width)), width) << progress.Line(width);
  }
  EXPECT_EQ(progress.Line(60), "[................] 1/32  best loss=0.5 (trial 1:...  ETA 16m");
}

TEST(ProgressTest, WithoutALimitThereIsNoBarAndNoEnd) {
  Stored stored;
  stored.experiment.mutable_spec()->clear_max_trial_count();
  stored.experiment.mutable_status()->mutable_shirabe()->set_waiting("no GPU is free");
  stored.PutExperiment();
  Progress progress(&stored.client(), stored.key());
  ASSERT_TRUE(progress.Update().ok());
  EXPECT_EQ(progress.Line(80), "0  no GPU is free");
  EXPECT_FALSE(progress.Remaining().has_value());
}

TEST(ProgressTest, TellsOnceOfEachTrialThatEndsFromNowOn) {
  Stored stored;
  stored.Put(MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5));
  stored.Put(MakeTrial(2, v1::TRIAL_RUNNING));
  Progress progress(&stored.client(), stored.key());
  ASSERT_TRUE(progress.Update().ok());
  EXPECT_TRUE(progress.PopFinished().empty());
  stored.Put(MakeTrial(2, v1::TRIAL_FAILED));
  stored.Put(MakeTrial(3, v1::TRIAL_RUNNING));
  ASSERT_TRUE(progress.Update().ok());
  ASSERT_TRUE(progress.Update().ok());
  const auto finished = progress.PopFinished();
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].number(), 2);
  EXPECT_TRUE(progress.PopFinished().empty());
}

TEST(ProgressTest, ATrialThatEndedIsOneLine) {
  EXPECT_EQ(FinishedLine(MakeExperiment(), MakeTrial(7, v1::TRIAL_SUCCEEDED, 0.25)),
            "trial digits-7 Succeeded loss=0.25 lr=0.0031 bs=32 opt=sgd");
  v1::Trial failed = MakeTrial(8, v1::TRIAL_FAILED);
  failed.set_message("exit code 1");
  EXPECT_EQ(FinishedLine(MakeExperiment(), failed),
            "trial digits-8 Failed lr=0.0031 bs=32 opt=sgd: exit code 1");
}

}  // namespace
}  // namespace shirabe::view
