#include "view/describe_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/stored.h"

namespace shirabe::view {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void PutLedger(Stored& stored, const std::vector<v1::Attempt>& attempts,
               const std::vector<v1::Checkpoint>& checkpoints = {}) {
  db::Batch batch;
  batch.experiment = stored.key();
  for (const v1::Attempt& attempt : attempts) batch.attempts.push_back({attempt, 0});
  for (const v1::Checkpoint& checkpoint : checkpoints) {
    batch.checkpoints.push_back({checkpoint, 0});
  }
  stored.Commit(batch);
}

std::string Describe(Stored& stored, int64_t trial, int64_t now = 100) {
  const auto text = DescribeTrial(stored.client(), {stored.key(), trial}, At(now));
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

TEST(DescribeTest, AnExperimentSaysHowItIsAndWhy) {
  Stored stored;
  SetCondition("Running", stored.experiment);
  stored.experiment.mutable_status()->set_trials_running(2);
  stored.experiment.mutable_status()->mutable_shirabe()->set_waiting("no GPU is free");
  SetBest(MakeTrial(1, v1::TRIAL_SUCCEEDED, 0.5), stored.experiment);
  v1::RecommendedTrial& recommended =
      *stored.experiment.mutable_status()->mutable_shirabe()->mutable_recommended_trial();
  recommended.set_trial_name("digits-9");
  recommended.set_predicted(0.625);
  recommended.set_deviation(0.0625);
  recommended.set_reason("it was luck");
  stored.PutExperiment();
  const auto text = DescribeExperiment(stored.client(), stored.key(), At(100));
  ASSERT_TRUE(text.ok()) << text.status();
  for (const char* line :
       {"Name:         digits\n", "State:        Running (ExperimentRunning: it is Running)\n",
        "Waiting:      no GPU is free\n", "Run by:       none: `shirabe run`",
        "Objective:    minimize loss; also acc\n", "Trials:       0/32 finished: 2 running\n",
        "Limits:       2 at the same time, at most 32 trials\n",
        "Best:         loss=0.5 (trial digits-1, step 2): lr=0.0031 bs=32 opt=sgd\n",
        "Recommended:  trial digits-9, predicted 0.625 ± 0.0625: it was luck\n",
        "  lr     double        1e-05 .. 0.1, logUniform\n"}) {
    EXPECT_THAT(*text, HasSubstr(line));
  }
}

TEST(DescribeTest, AParameterSaysWhenItExistsAndWhereTheBestIsExpected) {
  Stored stored;
  v1::ParameterCondition& condition =
      *stored.experiment.mutable_spec()->mutable_shirabe()->mutable_space()->add_conditions();
  condition.set_parameter("lr");
  (*condition.mutable_when()->mutable_fields())["opt"].set_string_value("sgd");
  auto& priors =
      *stored.experiment.mutable_spec()->mutable_shirabe()->mutable_space()->mutable_priors();
  auto& prior = *(*priors.mutable_fields())["lr"].mutable_struct_value()->mutable_fields();
  prior["center"].set_number_value(0.0003);
  stored.PutExperiment();
  const auto text = DescribeExperiment(stored.client(), stored.key(), At(100));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text,
              HasSubstr("  lr     double        1e-05 .. 0.1, logUniform; only where opt is sgd; "
                        "expected near 3e-04 (medium)\n"));
}

TEST(DescribeTest, TrialsThatWaitForTheSameAreToldTogether) {
  Stored stored;
  for (int64_t number = 1; number <= 4; ++number) {
    v1::Trial trial = MakeTrial(number, number == 1 ? v1::TRIAL_RUNNING : v1::TRIAL_PENDING, 0);
    if (number > 1) trial.set_waiting(number == 3 ? "a backoff" : "no node can take it");
    stored.Put(trial);
  }
  const auto text = DescribeExperiment(stored.client(), stored.key(), At(100));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("Waiting trials:\n"
                               "  TRIALS   FIRST      WHY\n"
                               "  1        digits-3   a backoff\n"
                               "  2        digits-2   no node can take it\n"));
}

TEST(DescribeTest, AFailedTrialShowsItsLastLines) {
  Stored stored;
  v1::Trial trial = MakeTrial(1, v1::TRIAL_FAILED);
  trial.set_reason("TrialFailed");
  trial.set_message("exit code 3");
  trial.set_explanation("drawn at random");
  stored.Put(trial);
  v1::Attempt attempt = MakeClosedAttempt(1, 1);
  attempt.set_cause(v1::APP_ERROR);
  attempt.set_log_tail("Traceback\nValueError: no\n");
  PutLedger(stored, {attempt});
  const auto text = DescribeTrial(stored.client(), {stored.key(), 1}, At(100));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("(TrialFailed: exit code 3)"));
  EXPECT_THAT(*text, HasSubstr("Chosen:       drawn at random\n"));
  EXPECT_THAT(*text, HasSubstr("Last lines:\n  Traceback\n  ValueError: no\n"));
  EXPECT_THAT(*text, HasSubstr("app-error"));
  EXPECT_THAT(*text, Not(HasSubstr("secret")));
}

TEST(DescribeTest, AnExperimentSaysWhatItTakesWithItsRunningAttempts) {
  Stored stored;
  v1::ShirabeStatus& status = *stored.experiment.mutable_status()->mutable_shirabe();
  status.set_cost(1);
  status.set_seconds(100);
  stored.PutExperiment();
  stored.Put(MakeTrial(1, v1::TRIAL_RUNNING));
  v1::Attempt open = MakeClosedAttempt(1, 1);
  open.set_state(v1::ATTEMPT_RUNNING);
  open.mutable_placements(0)->clear_end_time();
  PutLedger(stored, {open});
  const auto text = DescribeExperiment(stored.client(), stored.key(), At(70));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("Cost:         1.05 USD, for 2m30s of machines\n"));
}

TEST(DescribeTest, ATrialShowsItsLedgerAndItsCheckpoints) {
  Stored stored;
  v1::Trial trial = MakeTrial(7, v1::TRIAL_SUCCEEDED, 0.25);
  trial.set_wasted_seconds(4.5);
  trial.set_wasted_cost(0.0045);
  stored.Put(trial);
  v1::Checkpoint pruned = MakeCheckpoint(7, 1, 5200);
  pruned.set_gone("pruned");
  PutLedger(stored, {MakeClosedAttempt(7, 1), MakeClosedAttempt(7, 2)},
            {pruned, MakeCheckpoint(7, 2, 5230)});
  const std::string text = Describe(stored, 7);
  EXPECT_THAT(text, HasSubstr("Took:         79.0s, 0.0790 USD; wasted 4.5s, 0.0045 USD\n"));
  EXPECT_THAT(text, HasSubstr("Attempts:\n  NAME          STATE    CAUSE            NODE"));
  EXPECT_THAT(text, HasSubstr("digits-7-a2   closed   preempted-spot   spot-1   spot"));
  EXPECT_THAT(text, HasSubstr("Checkpoints:\n  STEP   ATTEMPT"));
  EXPECT_THAT(text, HasSubstr("5200   a1        1.5 KiB   50s   0123456789ab   pruned\n"));
  EXPECT_THAT(text, HasSubstr("5230   a2        1.5 KiB   50s   0123456789ab   -\n"));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("Why:")), Not(HasSubstr("Last stop:"))));
}

TEST(DescribeTest, APreemptedTrialSaysWhyItStoppedAndUntilWhenItWaits) {
  Stored stored;
  stored.Own();
  v1::Trial trial = MakeTrial(7, v1::TRIAL_PENDING);
  trial.set_attempts(1);
  trial.set_waiting("no free slot in pool a100-spot (4 of 4 busy)");
  *trial.mutable_not_before() = ToProto(At(130));
  stored.Put(trial);
  PutLedger(stored, {MakeClosedAttempt(7, 1)});
  const std::string text = Describe(stored, 7);
  EXPECT_THAT(text, HasSubstr("Why:          backoff until 2023-11-14T22:15:30Z (in 30s); "
                              "no free slot in pool a100-spot (4 of 4 busy)\n"));
  EXPECT_THAT(text, HasSubstr("Last stop:    attempt 1: preempted-spot, 2023-11-14T22:14:20Z"));
  EXPECT_THAT(Describe(stored, 7, 131), Not(HasSubstr("backoff"))) << "it is over";
}

TEST(DescribeTest, WhatHoldsTheExperimentUpHoldsUpItsTrials) {
  Stored stored;
  stored.Put(MakeTrial(7, v1::TRIAL_PENDING));
  EXPECT_THAT(Describe(stored, 7), HasSubstr("Why:          no process runs the experiment"));
  stored.Own();
  v1::ShirabeStatus& status = *stored.experiment.mutable_status()->mutable_shirabe();
  status.set_waiting("the budget of 25 USD is spent or reserved");
  stored.PutExperiment();
  EXPECT_THAT(Describe(stored, 7), HasSubstr("Why:          the budget of 25 USD is spent"));
  status.set_paused(true);
  stored.PutExperiment();
  EXPECT_THAT(Describe(stored, 7), HasSubstr("paused: `shirabe resume digits`"));
}

TEST(DescribeTest, ATrialBeingStoppedSaysWhy) {
  Stored stored;
  stored.Put(MakeTrial(7, v1::TRIAL_RUNNING));
  v1::Attempt attempt = MakeClosedAttempt(7, 1);
  attempt.set_state(v1::ATTEMPT_RUNNING);
  attempt.mutable_stop()->set_cause(v1::SUSPENDED);
  PutLedger(stored, {attempt});
  const std::string text = Describe(stored, 7);
  EXPECT_THAT(text, HasSubstr("Last stop:    being stopped: suspended\n"));
  EXPECT_THAT(text, Not(HasSubstr("Why:")));
}

}  // namespace
}  // namespace shirabe::view
