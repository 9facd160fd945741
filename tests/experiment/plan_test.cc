#include "experiment/plan.h"

#include <gtest/gtest.h>

#include <list>

#include "base/timestamp.h"
#include "experiment/state/retry_policy.h"

namespace shirabe::experiment {
namespace {

class PlanTest : public testing::Test {
 protected:
  PlanTest() {
    spec().set_parallel_trial_count(3);
    spec().set_max_trial_count(10);
    spec().mutable_objective()->set_type(v1::MINIMIZE);
    spec().mutable_objective()->set_objective_metric_name("loss");
  }

  v1::ExperimentSpec& spec() { return *experiment_.mutable_spec(); }
  v1::ExperimentStatus& status() { return *experiment_.mutable_status(); }

  // Adds a live trial, with or without an open attempt.
  v1::Trial& AddLive(bool open) {
    v1::Trial& trial = trials_.emplace_back();
    status().set_trials(status().trials() + 1);
    trial.set_number(status().trials());
    input_.live.push_back({&trial, open ? &attempts_.emplace_back() : nullptr});
    return trial;
  }

  void SetDone(int succeeded, int failed = 0, int unavailable = 0) {
    status().set_trials_succeeded(succeeded);
    status().set_trials_failed(failed);
    status().set_trial_metrics_unavailable(unavailable);
    status().set_trials(succeeded + failed + unavailable);
  }

  void SetBest(double objective) {
    status().mutable_current_optimal_trial()->set_objective(objective);
  }

  void SetCondition(const std::string& type) {
    v1::Condition* condition = status().add_conditions();
    condition->set_type(type);
    condition->set_status("True");
  }

  Plan Make() {
    input_.experiment = &experiment_;
    input_.now = now_;
    return MakePlan(input_);
  }

  v1::Experiment experiment_;
  PlanInput input_;
  std::list<v1::Trial> trials_;
  std::list<v1::Attempt> attempts_;
  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
};

TEST_F(PlanTest, AsksForAsManyAsMayRun) { EXPECT_EQ(Make().suggest, 3); }

TEST_F(PlanTest, LiveTrialsHoldTheirSlots) {
  AddLive(true);
  AddLive(false);
  EXPECT_EQ(Make().suggest, 1);
}

TEST_F(PlanTest, NeverCreatesMoreThanMaxTrialCount) {
  SetDone(9);
  EXPECT_EQ(Make().suggest, 1);
  AddLive(true);
  EXPECT_EQ(Make().suggest, 0);
}

TEST_F(PlanTest, WithoutAMaximumItGoesOn) {
  spec().clear_max_trial_count();
  SetDone(100000);
  EXPECT_EQ(Make().suggest, 3);
}

TEST_F(PlanTest, WaitingTrialsStartBeforeNewOnesWhenTheirTimeHasCome) {
  AddLive(false);
  v1::Trial& later = AddLive(false);
  *later.mutable_not_before() = ToProto(now_ + absl::Seconds(5));
  const Plan plan = Make();
  EXPECT_EQ(plan.start, std::vector<int64_t>{1});
  EXPECT_EQ(plan.wake, absl::Seconds(5));
  EXPECT_EQ(plan.suggest, 1);
}

// F18: a time written before the wall clock was set back must not hold a trial up.
TEST_F(PlanTest, AClockSetBackMakesNobodyWait) {
  *AddLive(false).mutable_not_before() = ToProto(now_ + absl::Hours(1));
  EXPECT_EQ(Make().start, std::vector<int64_t>{1});
}

// Katib deletes the newest trials when parallelTrialCount is lowered (defect 11). What has saved
// nothing runs on.
TEST_F(PlanTest, FewerParallelTrialsStopNobody) {
  for (int i = 0; i < 3; ++i) AddLive(true);
  AddLive(false);
  spec().set_parallel_trial_count(1);
  const Plan plan = Make();
  EXPECT_TRUE(plan.stop.empty());
  EXPECT_TRUE(plan.start.empty());
  EXPECT_EQ(plan.suggest, 0);
}

TEST_F(PlanTest, FewerParallelTrialsGiveUpThoseThatHaveJustSaved) {
  for (int i = 0; i < 4; ++i) AddLive(true);
  input_.live[0].unsaved = absl::Seconds(9);
  input_.live[2].unsaved = absl::Seconds(2);
  spec().set_parallel_trial_count(1);
  Plan plan = Make();
  ASSERT_EQ(plan.stop.size(), 2u);
  EXPECT_EQ(plan.stop[0].trial, 3);
  EXPECT_EQ(plan.stop[0].cause, v1::SUSPENDED);
  EXPECT_EQ(plan.stop[0].why,
            "1 trials may run at the same time, and 4 run: 2.0 s of its work are not saved, the "
            "least of 4 that run");
  EXPECT_EQ(plan.stop[1].trial, 1);
  EXPECT_EQ(plan.waiting,
            "1 trials may run at the same time, and 4 run: the next that saves a checkpoint makes "
            "room, and goes on later");
  EXPECT_TRUE(plan.start.empty());
  EXPECT_EQ(plan.suggest, 0);
  // These are on their way, and one more is too many.
  input_.live[0].leaves = input_.live[2].leaves = true;
  input_.live[1].unsaved = input_.live[3].unsaved = absl::ZeroDuration();
  plan = Make();
  ASSERT_EQ(plan.stop.size(), 1u);
  EXPECT_EQ(plan.stop[0].trial, 4) << "the newest of equals";
  input_.live[3].leaves = true;
  EXPECT_TRUE(Make().stop.empty());
}

TEST_F(PlanTest, WhoHasNotSavedForAGracePeriodRunsOn) {
  spec().mutable_shirabe()->mutable_attempts()->set_grace_period_seconds(30);
  for (int i = 0; i < 2; ++i) AddLive(true);
  spec().set_parallel_trial_count(1);
  for (LiveTrial& live : input_.live) live.unsaved = absl::Seconds(31);
  EXPECT_TRUE(Make().stop.empty());
  input_.live[0].unsaved = absl::Seconds(30);
  EXPECT_EQ(Make().stop.size(), 1u);
  status().mutable_shirabe()->set_paused(true);
  EXPECT_TRUE(Make().stop.empty()) << "nothing new starts, and what runs goes on";
}

TEST_F(PlanTest, EndsAtMaxTrialCount) {
  SetDone(8, 2);
  const Plan plan = Make();
  ASSERT_TRUE(plan.ending);
  EXPECT_TRUE(plan.ending->succeeded);
  EXPECT_EQ(plan.ending->reason, "ExperimentMaxTrialsReached");
  EXPECT_TRUE(plan.conclude);
}

TEST_F(PlanTest, AGoalStopsWhatRunsAndConcludesAfterwards) {
  spec().mutable_objective()->set_goal(0.1);
  SetBest(0.05);
  AddLive(true);
  AddLive(false);
  Plan plan = Make();
  ASSERT_TRUE(plan.ending);
  EXPECT_EQ(plan.ending->reason, "ExperimentGoalReached");
  ASSERT_EQ(plan.stop.size(), 1u);
  EXPECT_EQ(plan.stop[0].cause, v1::EXPERIMENT_ENDED);
  EXPECT_EQ(plan.kill, std::vector<int64_t>{2});
  EXPECT_FALSE(plan.conclude);
  input_.live.clear();
  EXPECT_TRUE(Make().conclude);
}

TEST_F(PlanTest, FailsOnlyBeyondMaxFailedTrialCount) {
  spec().set_max_failed_trial_count(2);
  SetDone(1, 1, 1);
  EXPECT_FALSE(Make().ending);
  SetDone(1, 2, 1);
  const Plan plan = Make();
  ASSERT_TRUE(plan.ending);
  EXPECT_FALSE(plan.ending->succeeded);
}

// Katib's defect 12: trials lost to the platform fail the experiment.
TEST_F(PlanTest, KilledTrialsAreNotFailures) {
  spec().set_max_failed_trial_count(0);
  status().set_trials_killed(5);
  EXPECT_FALSE(Make().ending);
}

TEST_F(PlanTest, AnExhaustedSpaceEndsOnceItsTrialsHave) {
  status().mutable_shirabe()->set_exhausted(true);
  status().mutable_shirabe()->set_waiting("all 6 points have been tried");
  AddLive(true).set_waiting("no node can take it");
  EXPECT_FALSE(Make().ending);
  EXPECT_EQ(Make().suggest, 0);
  EXPECT_EQ(Make().waiting, "") << "it would be given for the reason of the end";
  input_.live.clear();
  EXPECT_EQ(Make().ending->reason, "ExperimentSuggestionEndReached");
  EXPECT_EQ(Make().ending->message,
            "the algorithm has no further point: all 6 points have been tried");
}

TEST_F(PlanTest, SuspensionStopsWhatRunsAndKillsNothing) {
  AddLive(true);
  AddLive(false);
  input_.suspended = true;
  const Plan plan = Make();
  ASSERT_EQ(plan.stop.size(), 1u);
  EXPECT_EQ(plan.stop[0].cause, v1::SUSPENDED);
  EXPECT_TRUE(plan.kill.empty());
  EXPECT_TRUE(plan.start.empty());
  EXPECT_EQ(plan.suggest, 0);
}

TEST_F(PlanTest, PauseStartsNothingAndLeavesTheRest) {
  AddLive(true);
  AddLive(false);
  status().mutable_shirabe()->set_paused(true);
  const Plan plan = Make();
  EXPECT_TRUE(plan.stop.empty());
  EXPECT_TRUE(plan.start.empty());
  EXPECT_EQ(plan.suggest, 0);
  EXPECT_NE(plan.waiting, "");
}

TEST_F(PlanTest, AnEndedExperimentOnlyStops) {
  SetCondition("Succeeded");
  AddLive(true);
  const Plan plan = Make();
  EXPECT_EQ(plan.stop.size(), 1u);
  EXPECT_EQ(plan.suggest, 0);
}

// Its last trials are done, too, once they are stopped: that is not what has ended it.
TEST_F(PlanTest, OneThatIsStoppedWithAllItsTrialsMadeWasStopped) {
  spec().set_max_trial_count(2);
  status().set_trials_killed(2);
  status().mutable_shirabe()->set_stopping(true);
  status().mutable_shirabe()->set_stop_reason("stopped by ann");
  const Plan plan = Make();
  ASSERT_TRUE(plan.ending);
  EXPECT_EQ(plan.ending->reason, "ExperimentStopped");
  EXPECT_FALSE(plan.ending->succeeded) << "nothing was found";
}

TEST_F(PlanTest, ATemplateThatCannotRunFailsTheExperiment) {
  status().mutable_shirabe()->set_fatal("no command");
  const Plan plan = Make();
  ASSERT_TRUE(plan.ending);
  EXPECT_FALSE(plan.ending->succeeded);
  EXPECT_EQ(plan.ending->message, "no command");
}

TEST_F(PlanTest, TheSameInputGivesTheSamePlan) {
  AddLive(true);
  AddLive(false);
  const Plan a = Make(), b = Make();
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.suggest, b.suggest);
}

// ---- the budget ---------------------------------------------------------------------------------

TEST_F(PlanTest, NothingStartsThatTheBudgetCouldNotBear) {
  AddLive(true);
  AddLive(false);
  input_.money = {.cap = 10.0, .spent = 7, .reserved = 1, .next = 1};
  Plan plan = Make();
  EXPECT_FALSE(plan.ending);
  EXPECT_EQ(plan.start.size() + plan.suggest, 1u) << "one more may start, of two that could";
  input_.money.next = 2;
  plan = Make();
  EXPECT_FALSE(plan.ending) << "what runs may go on";
  EXPECT_TRUE(plan.start.empty());
  EXPECT_EQ(plan.suggest, 0);
  EXPECT_NE(plan.why.at(2).find("budget"), std::string::npos);
}

TEST_F(PlanTest, ASpentBudgetEndsTheExperimentAndKeepsItsBest) {
  AddLive(true);
  AddLive(false);
  SetBest(0.1);
  input_.money = {.cap = 10.0, .spent = 9, .reserved = 1, .next = 1};
  Plan plan = Make();
  ASSERT_TRUE(plan.ending);
  EXPECT_TRUE(plan.ending->succeeded);
  EXPECT_EQ(plan.ending->reason, "BudgetReached");
  EXPECT_EQ(plan.stop.size(), 1u);
  EXPECT_EQ(plan.kill.size(), 1u);
  EXPECT_FALSE(plan.conclude);
}

TEST_F(PlanTest, ARestThatBuysNoAttemptIsTheEndToo) {
  SetDone(3);
  input_.money = {.cap = 10.0, .spent = 9, .next = 2};
  EXPECT_TRUE(Make().conclude);
  input_.money.next = 0.5;
  EXPECT_FALSE(Make().ending);
  input_.money = {.spent = 1e9, .next = 1e9};
  EXPECT_FALSE(Make().ending) << "nobody set a budget";
}

TEST_F(PlanTest, ATrialThatCannotProgressSaysSo) {
  v1::Trial& trial = AddLive(false);
  trial.set_fruitless(kNoProgressAfter);
  *trial.mutable_not_before() = ToProto(now_ + absl::Seconds(20));
  spec().set_max_trial_count(1);
  const Plan plan = Make();
  EXPECT_EQ(plan.wake, absl::Seconds(20));
  EXPECT_NE(plan.why.at(1).find("cannot progress: 3 attempts in a row"), std::string::npos);
  EXPECT_NE(plan.why.at(1).find("attempts.maxPreemptions"), std::string::npos) << "the way out";
  EXPECT_EQ(plan.waiting, plan.why.at(1)) << "nothing else runs";
}

TEST_F(PlanTest, WhatIsOnItsWayAndWaitsSaysWhyNothingRuns) {
  AddLive(true).set_waiting("no node can take it");
  EXPECT_EQ(Make().waiting, "no node can take it");
  v1::Trial& second = AddLive(true);
  EXPECT_EQ(Make().waiting, "") << "the second one is about to start";
  second.set_waiting("no node can take it");
  EXPECT_EQ(Make().waiting, "no node can take it");
  attempts_.back().set_state(v1::ATTEMPT_RUNNING);
  EXPECT_EQ(Make().waiting, "");
}

// ---- limits and steps --------------------------------------------------------------------------

TEST_F(PlanTest, AsksForAFewTrialsAtATime) {
  spec().set_parallel_trial_count(1'000'000);
  spec().set_max_trial_count(1'000'000);
  const Plan plan = Make();
  EXPECT_EQ(plan.suggest, kMaxNewTrials);
  EXPECT_TRUE(plan.more) << "the others follow at once";
  spec().set_max_trial_count(kMaxNewTrials);
  EXPECT_FALSE(Make().more);
}

TEST_F(PlanTest, StartsAFewTrialsAtATime) {
  spec().set_parallel_trial_count(1000);
  spec().set_max_trial_count(1000);
  for (int i = 0; i < 100; ++i) AddLive(false);
  const Plan plan = Make();
  EXPECT_EQ(plan.start.size(), static_cast<size_t>(kMaxNewTrials));
  EXPECT_TRUE(plan.more);
}

TEST_F(PlanTest, AnAdministratorLimitsTrialsAtTheSameTime) {
  input_.limits.parallel_trials = 4;
  spec().set_parallel_trial_count(8);
  spec().set_max_trial_count(100);
  Plan plan = Make();
  EXPECT_EQ(plan.suggest, 4);
  EXPECT_FALSE(plan.more);
  EXPECT_NE(plan.limited.find("--max-parallel-trials 4"), std::string::npos) << plan.limited;
  for (int i = 0; i < 4; ++i) AddLive(true);
  plan = Make();
  EXPECT_EQ(plan.suggest, 0);
  EXPECT_EQ(plan.waiting, plan.limited);
  input_.limits.parallel_trials = 0;
  EXPECT_EQ(Make().suggest, 4) << "0 is any number";
}

TEST_F(PlanTest, ThoseWhoAskAreLimitedToo) {
  input_.limits.parallel_trials = 4;
  input_.asked = 100;
  spec().clear_max_trial_count();
  EXPECT_EQ(Make().suggest, 4);
  for (int i = 0; i < 4; ++i) AddLive(true);
  EXPECT_EQ(Make().suggest, 0);
  EXPECT_FALSE(Make().waiting.empty());
}

TEST_F(PlanTest, AnAdministratorLimitsTrialsInAll) {
  input_.limits.trials = 5;
  spec().set_max_trial_count(1'000'000'000);
  SetDone(4);
  EXPECT_EQ(Make().suggest, 1);
  SetDone(5);
  const Plan plan = Make();
  EXPECT_EQ(plan.suggest, 0);
  EXPECT_FALSE(plan.ending) << "a higher limit lets it go on";
  EXPECT_NE(plan.waiting.find("--max-trials 5"), std::string::npos) << plan.waiting;
}

TEST_F(PlanTest, ABudgetIsDividedWithoutCounting) {
  spec().set_parallel_trial_count(1'000'000);
  spec().set_max_trial_count(1'000'000);
  input_.limits.parallel_trials = 0;
  input_.money = {.cap = 1e9, .next = 1e-9};
  EXPECT_EQ(Make().suggest, kMaxNewTrials);
  EXPECT_EQ(BudgetState({.cap = 10.0, .next = 1.0}).Affordable(1'000'000'000), 9);
  EXPECT_EQ(BudgetState({.cap = 0.3, .next = 0.1}).Affordable(1'000'000'000), 2);
}

}  // namespace
}  // namespace shirabe::experiment
