// When a search ends by spec.shirabe.limits and stopWhen: the figures, the guards, and that what
// was decided once stays.
#include "experiment/state/stop_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/timestamp.h"
#include "experiment/plan.h"

namespace shirabe::experiment {
namespace {

using ::testing::HasSubstr;

class StopRulesTest : public testing::Test {
 protected:
  StopRulesTest() {
    spec().mutable_objective()->set_type(v1::MINIMIZE);
    spec().mutable_objective()->set_objective_metric_name("loss");
    *status().mutable_start_time() = ToProto(begin_);
  }

  v1::ExperimentSpec& spec() { return *experiment_.mutable_spec(); }
  v1::StopWhen& stop() { return *spec().mutable_shirabe()->mutable_stop_when(); }
  v1::ExperimentStatus& status() { return *experiment_.mutable_status(); }

  void AddResult(double objective) {
    status().set_trials_succeeded(status().trials_succeeded() + 1);
    CountResult(objective, true, experiment_);
  }
  // The rule's name after so many seconds; "" = none.
  std::string RuleAt(double seconds) {
    const auto rule = DecideStopRule(experiment_, begin_ + absl::Seconds(seconds));
    return rule ? rule->rule() : "";
  }
  void PauseAt(bool paused, double seconds) {
    status().mutable_shirabe()->set_paused(paused);
    CountPause(paused, begin_ + absl::Seconds(seconds), experiment_);
  }

  v1::Experiment experiment_;
  absl::Time begin_ = absl::FromUnixSeconds(1'700'000'000);
};

TEST_F(StopRulesTest, BeforeSomethingKeepsTheConstraintsNothingIsCounted) {
  stop().set_no_improvement_trials(2);
  const auto add = [&](double loss, bool feasible) {
    status().set_trials_succeeded(status().trials_succeeded() + 1);
    CountResult(loss, feasible, experiment_);
  };
  for (int i = 0; i < 5; ++i) add(1, false);
  EXPECT_EQ(RuleAt(0), "");
  add(5, true);
  add(1, false);
  add(1, false);
  ASSERT_EQ(RuleAt(0), "stopWhen.noImprovementTrials") << "what breaks them is no improvement";
  EXPECT_EQ(BestWords(experiment_), "; no trial keeps spec.shirabe.constraints")
      << "as long as there is no best trial";
}

TEST_F(StopRulesTest, WhatComesOntoTheFrontIsAnImprovement) {
  stop().set_no_improvement_trials(2);
  spec().mutable_shirabe()->add_additional_objectives();
  CountFrontResult(false, experiment_);
  EXPECT_EQ(status().shirabe().trials_since_improvement(), 0) << "nothing is on it yet";
  CountFrontResult(true, experiment_);
  status().mutable_current_optimal_trial()->set_objective(1);
  CountFrontResult(false, experiment_);
  EXPECT_EQ(status().shirabe().trials_since_improvement(), 1);
  CountFrontResult(true, experiment_);
  EXPECT_EQ(status().shirabe().trials_since_improvement(), 0);
}

TEST_F(StopRulesTest, ResultsWithoutAnImprovementAreCounted) {
  stop().set_no_improvement_trials(3);
  for (const double loss : {5.0, 6.0, 5.0}) AddResult(loss);
  EXPECT_EQ(RuleAt(0), "") << "two results after the best: equal is no improvement";
  AddResult(4.9);
  for (const double loss : {5.0, 6.0}) AddResult(loss);
  EXPECT_EQ(RuleAt(0), "") << "4.9 was one";
  AddResult(4.9);
  const auto rule = DecideStopRule(experiment_, begin_);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(rule->rule(), "stopWhen.noImprovementTrials");
  EXPECT_EQ(rule->value(), 3);
  EXPECT_EQ(rule->threshold(), 3);
  EXPECT_EQ(rule->results(), 7);
  EXPECT_THAT(rule->message(), HasSubstr("3 results in a row were no improvement"));
  EXPECT_EQ(ReasonOf(*rule), "ExperimentNoImprovement");
}

TEST_F(StopRulesTest, WhatIsMaximisedImprovesUpwards) {
  spec().mutable_objective()->set_type(v1::MAXIMIZE);
  stop().set_no_improvement_trials(2);
  for (const double accuracy : {0.5, 0.6, 0.7, 0.6}) AddResult(accuracy);
  EXPECT_EQ(RuleAt(0), "");
  AddResult(0.65);
  EXPECT_EQ(RuleAt(0), "stopWhen.noImprovementTrials");
}

TEST_F(StopRulesTest, SmallStepsTogetherAreAnImprovement) {
  stop().set_no_improvement_trials(3);
  stop().set_min_improvement(1);
  for (const double loss : {10.0, 9.6, 9.2}) AddResult(loss);
  EXPECT_EQ(status().shirabe().trials_since_improvement(), 2);
  AddResult(8.8);  // 1.2 better than the last improvement, 0.4 than the best
  EXPECT_EQ(status().shirabe().trials_since_improvement(), 0);
  for (int i = 0; i < 3; ++i) AddResult(7.9);
  EXPECT_EQ(RuleAt(0), "stopWhen.noImprovementTrials") << "0.9 is less than what counts";
}

TEST_F(StopRulesTest, NothingIsWrittenWhereNothingAsksForIt) {
  const std::string before = experiment_.SerializeAsString();
  CountResult(1, true, experiment_);
  CountPause(true, begin_, experiment_);
  CountPause(false, begin_ + absl::Seconds(5), experiment_);
  EXPECT_EQ(experiment_.SerializeAsString(), before);
  EXPECT_EQ(RuleAt(1e9), "");
}

TEST_F(StopRulesTest, MinTrialsGuardsTheRulesAndNotTheLimits) {
  stop().set_no_improvement_trials(1);
  stop().set_min_trials(4);
  stop().set_regret_below(0.1);
  status().mutable_shirabe()->mutable_regret_bound()->set_bound(0.05);
  spec().mutable_shirabe()->mutable_limits()->set_experiment_seconds(60);
  for (const double loss : {1.0, 1.0, 1.0}) AddResult(loss);
  EXPECT_FALSE(WantsRegretBound(experiment_));
  EXPECT_EQ(RuleAt(59), "");
  EXPECT_EQ(RuleAt(60), "limits.experimentSeconds");
  AddResult(1);
  EXPECT_TRUE(WantsRegretBound(experiment_));
  EXPECT_EQ(RuleAt(59), "stopWhen.noImprovementTrials");
}

TEST_F(StopRulesTest, AResultWithoutAFiniteValueIsNone) {
  stop().set_no_improvement_trials(5);
  stop().set_min_trials(2);
  status().set_trials_succeeded(2);
  status().mutable_shirabe()->set_trials_infeasible(1);
  EXPECT_EQ(CountResults(status()), 1);
  EXPECT_EQ(RuleAt(0), "");
}

TEST_F(StopRulesTest, TheBoundOfTheRegretMustBeBelow) {
  stop().set_regret_below(0.1);
  AddResult(1);
  EXPECT_FALSE(WantsRegretBound(experiment_)) << "ten are the least where minTrials is not given";
  stop().set_min_trials(1);
  EXPECT_TRUE(WantsRegretBound(experiment_));
  v1::RegretBound& bound = *status().mutable_shirabe()->mutable_regret_bound();
  bound.set_results(1);
  bound.set_bound(0.1);
  EXPECT_FALSE(WantsRegretBound(experiment_)) << "it knows of this result";
  EXPECT_EQ(RuleAt(0), "");
  bound.set_bound(0.09);
  EXPECT_EQ(RuleAt(0), "stopWhen.regretBelow");
  EXPECT_THAT(DecideStopRule(experiment_, begin_)->message(),
              HasSubstr("within 0.09 of the optimum, by the model of 1 results"));
}

TEST_F(StopRulesTest, PausesDoNotCount) {
  spec().mutable_shirabe()->mutable_limits()->set_experiment_seconds(100);
  PauseAt(true, 40);
  EXPECT_EQ(TimeLeft(experiment_, begin_ + absl::Seconds(50)), absl::InfiniteDuration());
  EXPECT_EQ(RuleAt(5000), "") << "it is paused";
  PauseAt(false, 1040);
  EXPECT_EQ(TimeLeft(experiment_, begin_ + absl::Seconds(1040)), absl::Seconds(60));
  PauseAt(true, 1060);
  PauseAt(true, 1070);  // which changes nothing
  PauseAt(false, 1080);
  EXPECT_EQ(RuleAt(1119), "");
  EXPECT_EQ(RuleAt(1120), "limits.experimentSeconds");
}

TEST_F(StopRulesTest, APauseBeforeTheFirstTrialDoesNotCountTwice) {
  spec().mutable_shirabe()->mutable_limits()->set_experiment_seconds(100);
  status().clear_start_time();
  PauseAt(true, -50);
  *status().mutable_start_time() = ToProto(begin_);  // a trial of before the pause
  PauseAt(false, 10);
  EXPECT_EQ(RuleAt(109), "");
  EXPECT_EQ(RuleAt(110), "limits.experimentSeconds");
}

TEST_F(StopRulesTest, WhatWasDecidedStays) {
  stop().set_no_improvement_trials(1);
  for (const double loss : {1.0, 1.0}) AddResult(loss);
  const v1::StopRule decided = *DecideStopRule(experiment_, begin_);
  *status().mutable_shirabe()->mutable_stop_rule() = decided;
  AddResult(0.1);  // of a trial that ended while it was stopping
  EXPECT_EQ(DecideStopRule(experiment_, begin_)->SerializeAsString(), decided.SerializeAsString());
}

TEST_F(StopRulesTest, ThePlanEndsItAndSaysWhy) {
  stop().set_no_improvement_trials(1);
  spec().set_max_trial_count(100);
  for (const double loss : {1.0, 1.0}) AddResult(loss);
  PlanInput input{.experiment = &experiment_, .now = begin_};
  Plan plan = MakePlan(input);
  ASSERT_TRUE(plan.ending.has_value());
  EXPECT_FALSE(plan.ending->succeeded) << "nothing was found";
  status().mutable_current_optimal_trial()->set_objective(1);
  plan = MakePlan(input);
  EXPECT_TRUE(plan.ending->succeeded);
  EXPECT_EQ(plan.ending->reason, "ExperimentNoImprovement");
  EXPECT_EQ(plan.suggest, 0);
  spec().mutable_objective()->set_goal(1);
  EXPECT_EQ(MakePlan(input).ending->reason, "ExperimentGoalReached");
}

TEST_F(StopRulesTest, ThePlanWakesWhenTheTimeIsOver) {
  spec().mutable_shirabe()->mutable_limits()->set_experiment_seconds(90);
  const PlanInput input{.experiment = &experiment_, .now = begin_ + absl::Seconds(30)};
  EXPECT_EQ(MakePlan(input).wake, absl::Seconds(60));
}

// Any order of results: with a stricter rule a search never ends later, and a longer history never
// takes an end back.
TEST_F(StopRulesTest, AreMonotone) {
  Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<int> ends;
    std::vector<double> losses;
    for (int i = 0; i < 60; ++i) losses.push_back(rng.Uniform());
    for (const int patience : {2, 4, 8}) {
      experiment_ = {};
      spec().mutable_objective()->set_type(v1::MINIMIZE);
      stop().set_no_improvement_trials(patience);
      int end = 0;
      while (end < 60 && RuleAt(0).empty()) AddResult(losses[end++]);
      ends.push_back(end);
    }
    EXPECT_TRUE(std::is_sorted(ends.begin(), ends.end()));
  }
}

}  // namespace
}  // namespace shirabe::experiment
