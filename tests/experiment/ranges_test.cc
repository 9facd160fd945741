// Ranges of a running experiment that get wider or narrower: what may change, what becomes of the
// trials, and of what the algorithm knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/spec/range_changes.h"
#include "experiment/spec/trial_point.h"
#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

v1::ParameterChange Change(const std::string& flag) {
  const auto change = ParseChangeFlag(flag);
  EXPECT_TRUE(change.ok()) << change.status();
  return *change;
}

v1::Intent Ranges(const std::vector<std::string>& flags) {
  v1::Intent intent;
  intent.set_verb(v1::Intent::SCALE);
  intent.mutable_actor()->set_name("ann");
  for (const std::string& flag : flags) *intent.add_parameters() = Change(flag);
  return intent;
}

std::string WhyNot(const std::string& spec, const std::vector<std::string>& flags) {
  v1::Experiment experiment = ParseOnly(Replaced(kGood, "  parameters:", spec + "  parameters:"));
  return Message(WithChanges(experiment, Ranges(flags).parameters()).status());
}

TEST(RangeChanges, WhatIsNotGivenStays) {
  const v1::Experiment experiment = ParseOnly(kGood);
  const auto changed = WithChanges(
      experiment,
      Ranges({"lr=..0.5", "units=16..128", "batch=16,32,64", "optimizer=adam"}).parameters());
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(
      DescribeChanges(experiment.spec(), *changed),
      "lr 0.001 .. 0.1 -> 0.001 .. 0.5, units 8 .. 64 -> 16 .. 128, batch 16, 32 -> 16, 32, 64, "
      "optimizer sgd, adam -> adam");
  EXPECT_EQ(changed->parameters(2).feasible_space().numbers_size(), 3);
  EXPECT_EQ(changed->parameters(1).feasible_space().step(), 8);
  EXPECT_EQ(ChangesBetween(experiment.spec(), *changed).size(), 4);
  EXPECT_EQ(ChangesBetween(*changed, *changed).size(), 0);
}

TEST(RangeChanges, WhatCannotChangeIsRefusedByName) {
  EXPECT_THAT(WhyNot("", {"lrr=..1"}), HasSubstr("\"lrr\": does not exist"));
  EXPECT_THAT(WhyNot("", {"lr=..1", "lr=..2"}), HasSubstr("\"lr\": is given twice"));
  EXPECT_THAT(WhyNot("", {"lr=a,b"}), HasSubstr("has a range: give min, max or both"));
  EXPECT_THAT(WhyNot("", {"optimizer=1..2"}), HasSubstr("has a list: give all of its values"));
  EXPECT_THAT(WhyNot("", {"lr=5.."}), HasSubstr("spec.parameters[0].feasibleSpace"));
  EXPECT_THAT(WhyNot("", {"lr=..inf"}), HasSubstr("spec.parameters[0].feasibleSpace.max"));
  EXPECT_THAT(WhyNot("", {"units=12.."}), HasSubstr("no whole number of steps of 8 from 8"));
  EXPECT_THAT(WhyNot("", {"units=8.5.."}), HasSubstr("no whole number of steps"));
  EXPECT_THAT(WhyNot("", {"batch=a,b"}), HasSubstr("spec.parameters[2]"));
  EXPECT_THAT(WhyNot("  algorithm: {algorithmName: hyperband, algorithmSettings: [{name: "
                     "resource_name, value: units}]}\n",
                     {"units=..128"}),
              HasSubstr("is the resource_name of hyperband"));
  EXPECT_THAT(WhyNot("  shirabe: {space: {forbidden: [{optimizer: [sgd], batch: [16]}]}}\n",
                     {"optimizer=adam"}),
              HasSubstr("spec.shirabe.space.forbidden"));
  EXPECT_THAT(WhyNot("  shirabe: {start: [{lr: 0.1, units: 8, batch: 16, optimizer: sgd}]}\n",
                     {"lr=..0.01"}),
              HasSubstr("spec.shirabe.start[0] is still to be tried"));
  v1::Intent step = Ranges({"lr=..0.5"});
  step.mutable_parameters(0)->mutable_feasible_space()->set_step(0.1);
  EXPECT_THAT(Message(WithChanges(ParseOnly(kGood), step.parameters()).status()),
              HasSubstr("a step does not change while an experiment runs"));
  for (const char* flag : {"lr", "=1..2", "lr=", "lr=..", "lr=1..x"}) {
    EXPECT_THAT(Message(ParseChangeFlag(flag).status()), HasSubstr("write NAME=RANGE")) << flag;
  }
}

TEST(TrialPoints, AreMadeOfTheValuesWhereTheRangesHaveChanged) {
  v1::Experiment experiment = ParseOnly(kGood);
  const auto before = suggestion::Space::Create(experiment.spec());
  v1::Trial trial;
  trial.set_number(1);
  for (const double x : {0.25, 0.9, 1.0, 1.0}) trial.mutable_point()->add_x(x);
  const suggestion::Point made = before->Canonical({0.25, 0.9, 1.0, 1.0});
  for (const v1::Assignment& value : before->Decode(made)) *trial.add_assignments() = value;
  EXPECT_FALSE(PointIn(*before, 0, trial).earlier);
  EXPECT_EQ(PointIn(*before, 1, trial).point, made) << "of the same ranges it is the same point";

  *experiment.mutable_spec() =
      *WithChanges(experiment, Ranges({"lr=..0.01", "optimizer=sgd"}).parameters());
  const auto narrow = suggestion::Space::Create(experiment.spec());
  const TrialPoint outside = PointIn(*narrow, 1, trial);
  EXPECT_TRUE(outside.outside);
  EXPECT_EQ(outside.point[0], 1) << "the nearest value";
  EXPECT_EQ(outside.point[1], made[1]);
  EXPECT_THAT(Message(CheckedPoint(*narrow, 1, trial).status()),
              HasSubstr("trial 1 lies outside of the ranges as they are now"));

  *experiment.mutable_spec() =
      *WithChanges(experiment, Ranges({"lr=1e-4..1", "optimizer=adam,sgd,lion"}).parameters());
  const auto wide = suggestion::Space::Create(experiment.spec());
  const TrialPoint inside = PointIn(*wide, 2, trial);
  EXPECT_FALSE(inside.outside);
  EXPECT_TRUE(inside.earlier);
  const auto values = wide->Decode(inside.point);
  for (int i = 0; i < trial.assignments_size(); ++i) {
    EXPECT_EQ(values[i].SerializeAsString(), trial.assignments(i).SerializeAsString());
  }
}

class RangesTest : public ReconcilerTest {
 protected:
  Status SendIntent(v1::Intent intent) {
    const Status sent = experiment::Send(*store_, clock_, kKey, std::move(intent));
    reconciler_.NotifyIntent(kKey);
    return sent;
  }
  v1::Experiment Experiment() { return store_->GetExperiment(kKey)->record; }
  v1::Trial Trial(int64_t number) { return store_->GetTrial({kKey, number})->record; }
  double Lr(int64_t number) { return Trial(number).assignments(0).number(); }
  std::string ValuesOf(int64_t number) {
    const v1::Trial trial = Trial(number);
    std::string text;
    for (const v1::Assignment& value : trial.assignments()) text += value.SerializeAsString();
    return text;
  }
  // A trial runs, has this loss and ends.
  void RunTrial(double loss) {
    Pass();
    const int64_t number = Experiment().status().trials();
    trial::AttemptStatus running;
    *running.placement.mutable_start_time() = ToProto(clock_.Now());
    executor_.observed = running;
    clock_.Advance(absl::Seconds(1));
    Pass();
    Report(number, "loss", loss);
    executor_.observed->state = trial::AttemptStatus::State::kExited;
    executor_.observed->exit_code = 0;
    Pass();
    executor_.observed.reset();
  }
  void Report(int64_t trial, const std::string& metric, double value) {
    auto pending_report = std::make_shared<PendingReport>();  // shared with the queue
    pending_report->report = {.trial = {kKey, trial}, .attempt = 0};
    pending_report->report.points.push_back({.metric = metric, .value = value, .step = 1});
    ASSERT_TRUE(reconciler_.ReportQueueOf(kKey)->Put(pending_report).ok());
    Pass();
    ASSERT_TRUE(pending_report->answer.ok()) << pending_report->answer.status();
  }
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    const auto stored = store_->ListEvents({.experiment = kKey});
    for (const v1::Event& event : *stored) {
      events.push_back(
          absl::StrCat(event.reason(), " ", event.actor().name(), ": ", event.message()));
    }
    return events;
  }
};

TEST_F(RangesTest, TrialsOutsideAreKeptAndTheSearchGoesOnWithin) {
  Create(
      "  parallelTrialCount: 1\n  algorithm: {algorithmName: bayesianoptimization}\n"
      "  shirabe: {start: [{lr: 0.1, units: 8, batch: 16, optimizer: sgd}, {lr: 0.002, units: "
      "8, batch: 16, optimizer: sgd}]}\n");
  for (int i = 0; i < 5; ++i) RunTrial(1 - 0.01 * i);
  const v1::Experiment before = Experiment();
  int64_t outside = 0;
  ASSERT_EQ(before.status().trials(), 6) << "the last one runs";
  for (int64_t number = 1; number <= 6; ++number) outside += Lr(number) > 0.02;
  ASSERT_GT(outside, 0);
  ASSERT_LT(outside, 6);
  ASSERT_TRUE(SendIntent(Ranges({"lr=..0.02"})).ok());
  for (int i = 0; i < 3; ++i) Pass();
  const v1::Experiment after = Experiment();
  EXPECT_EQ(after.spec().parameters(0).feasible_space().max(), 0.02);
  EXPECT_EQ(after.metadata().generation(), before.metadata().generation() + 1);
  EXPECT_EQ(after.status().shirabe().space_changes(), 1);
  EXPECT_EQ(after.status().shirabe().outside_trials(), outside);
  EXPECT_EQ(after.status().shirabe().changed_by().name(), "ann");
  EXPECT_EQ(after.status().current_optimal_trial().number(),
            before.status().current_optimal_trial().number());
  EXPECT_THAT(Events(), Contains("ChangeRequested ann: lr 0.001 .. 0.1 -> 0.001 .. 0.02"));
  EXPECT_THAT(
      Events(),
      Contains(HasSubstr(absl::StrCat("TrialsOutside : ", outside, " of 6 trials lie outside"))));
  EXPECT_EQ(after.status().trials(), 6) << "what runs goes on";
  for (int i = 0; i < 3; ++i) RunTrial(0.5);
  ASSERT_GT(Experiment().status().trials(), 7);
  for (int64_t number = 7; number <= Experiment().status().trials(); ++number) {
    EXPECT_EQ(Trial(number).point().space(), 1);
    EXPECT_LE(Lr(number), 0.02);
  }
  EXPECT_EQ(Experiment().status().trials_succeeded(), 8);
}

// I10: who takes over finds the same history, and goes on as the owner would have.
TEST_F(RangesTest, ATakeoverGoesOnAsTheOwner) {
  for (const bool takes_over : {false, true}) {
    SCOPED_TRACE(takes_over);
    Create(absl::StrCat("  parallelTrialCount: 1\n  algorithm: {algorithmName: tpe}\n  shirabe: ",
                        "{seed: 5}\n"));
    for (int i = 0; i < 3; ++i) RunTrial(1 - 0.01 * i);
    ASSERT_TRUE(SendIntent(Ranges({"lr=..0.5", "optimizer=sgd,adam,lion"})).ok());
    Pass();
    if (takes_over) TakeOver();
    RunTrial(0.4);
    if (takes_over) TakeOver();
    RunTrial(0.3);
    static std::string points;
    std::string found;
    for (int64_t number = 1; number <= 5; ++number) {
      found += ValuesOf(number);
    }
    if (!takes_over) points = found;
    EXPECT_EQ(found, points);
    reconciler_.ReleaseOwnership(kKey);
    db::Batch batch{.experiment = kKey};
    batch.epoch = epoch_;
    batch.delete_experiment = true;
    ASSERT_TRUE(store_->Commit(batch).ok());
  }
}

TEST_F(RangesTest, OneThatLiesOutsideIsNotTriedAgain) {
  Create(
      "  parallelTrialCount: 1\n  shirabe: {start: [{lr: 0.1, units: 8, batch: 16, optimizer: "
      "sgd}]}\n");
  RunTrial(1);
  ASSERT_TRUE(SendIntent(Ranges({"lr=..0.02"})).ok());
  Pass();
  v1::Intent retry;
  retry.set_verb(v1::Intent::RETRY);
  retry.set_trial(1);
  EXPECT_THAT(Message(SendIntent(retry)), HasSubstr("trial 1 lies outside of the ranges"));
  retry.set_verb(v1::Intent::TRY);
  EXPECT_THAT(Message(SendIntent(retry)), HasSubstr("trial 1 lies outside of the ranges"));
  ASSERT_TRUE(SendIntent(Ranges({"lr=..0.2"})).ok());
  Pass();
  EXPECT_EQ(Experiment().status().shirabe().space_changes(), 2);
  Pass();
  EXPECT_EQ(Experiment().status().shirabe().outside_trials(), 0) << "it is within again";
  EXPECT_TRUE(SendIntent(retry).ok());
}

// What was exhausted has something to try again.
TEST_F(RangesTest, AGridThatGetsWiderGoesOnWithItsNewPoints) {
  v1::Experiment grid = ParseOnly(
      Replaced(Replaced(kGood, "max: \"0.1\"", "max: \"0.002\", step: \"0.001\""), "  parameters:",
               "  parallelTrialCount: 1\n  algorithm: {algorithmName: grid}\n  parameters:"));
  auto& parameters = *grid.mutable_spec()->mutable_parameters();
  parameters[1].mutable_feasible_space()->set_max(8);
  parameters[2].mutable_feasible_space()->mutable_list()->RemoveLast();
  parameters[2].mutable_feasible_space()->mutable_numbers()->RemoveLast();
  grid.mutable_spec()->set_max_trial_count(100);
  CreateFrom(grid);
  for (int i = 0; i < 3; ++i) RunTrial(1);
  ASSERT_TRUE(SendIntent(Ranges({"optimizer=lion,adam,sgd"})).ok());
  Pass();
  for (int i = 0; i < 3; ++i) RunTrial(1);
  for (int i = 0; i < 3; ++i) Pass();
  std::set<std::string> tried;
  for (int64_t number = 1; number <= Experiment().status().trials(); ++number) {
    EXPECT_TRUE(tried.insert(ValuesOf(number)).second) << number;
  }
  EXPECT_EQ(tried.size(), 6u) << "two learning rates, three optimizers";
  EXPECT_TRUE(IsEnded(Experiment()));
}

// Of several intents at once the later ones are meant for the space that the first one makes.
TEST_F(RangesTest, APointOfTheNewRangeMayBeTriedAtOnce) {
  Create("  parallelTrialCount: 1\n");
  ASSERT_TRUE(SendIntent(Ranges({"lr=..0.5"})).ok());
  Pass();
  v1::Intent again;
  again.set_verb(v1::Intent::TRY);
  (*again.mutable_point()->mutable_fields())["lr"].set_number_value(0.4);
  ASSERT_TRUE(SendIntent(again).ok());
  ASSERT_TRUE(SendIntent(Ranges({"lr=..0.6"})).ok());
  for (int i = 0; i < 4; ++i) Pass();
  bool tried = false;
  for (int64_t number = 1; number <= Experiment().status().trials(); ++number) {
    tried = tried || Lr(number) == 0.4;
  }
  EXPECT_TRUE(tried);
  EXPECT_EQ(Experiment().spec().parameters(0).feasible_space().max(), 0.6);
}

// `apply` of a file with another range is the same.
TEST_F(RangesTest, AppliedAgainWithAnotherRangeItIsTheSameExperiment) {
  Create("  parallelTrialCount: 1\n");
  const auto wanted =
      ParseOnly(Replaced(Replaced(kGood, "  parameters:", "  parallelTrialCount: 1\n  parameters:"),
                         "\"0.1\"", "\"0.3\""));
  const auto submitted = Submit(*store_, clock_, wanted);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_TRUE(submitted->changed);
  reconciler_.NotifyIntent(kKey);
  Pass();
  EXPECT_EQ(Experiment().spec().parameters(0).feasible_space().max(), 0.3);
  EXPECT_FALSE(Submit(*store_, clock_, wanted)->changed);
}

// ---- constraints that end a trial
// ----------------------------------------------------------------

class StopEarlyTest : public RangesTest {
 protected:
  static constexpr char kConstrained[] =
      "  parallelTrialCount: 1\n"
      "  shirabe: {constraints: [{metricName: memory, max: 16, stopEarly: true}]}\n";
};

TEST_F(StopEarlyTest, ATrialEndsOnceWhatItBrokeCountsToTheEnd) {
  v1::Experiment experiment = ParseOnly(Replaced(
      Replaced(
          kGood, "    additionalMetricNames: [accuracy]",
          "    additionalMetricNames: [accuracy]\n    metricStrategies: [{name: memory, value: "
          "max}]"),
      "  parameters:", std::string(kConstrained) + "  parameters:"));
  CreateFrom(experiment);
  Pass();
  trial::AttemptStatus running;
  *running.placement.mutable_start_time() = ToProto(clock_.Now());
  executor_.observed = running;
  clock_.Advance(absl::Seconds(1));
  Pass();
  Report(1, "loss", 0.5);
  Report(1, "memory", 15.5);
  EXPECT_TRUE(executor_.graces.empty()) << "it keeps it";
  auto more = std::make_shared<PendingReport>();  // shared with the queue
  more->report = {.trial = {kKey, 1}, .attempt = 0};
  more->report.points.push_back({.metric = "memory", .value = 18.25, .step = 7});
  ASSERT_TRUE(reconciler_.ReportQueueOf(kKey)->Put(more).ok());
  Pass();
  EXPECT_EQ(executor_.graces.size(), 1u);
  executor_.observed->state = trial::AttemptStatus::State::kExited;
  executor_.observed->exit_code = 143;
  Pass();
  EXPECT_EQ(Trial(1).phase(), v1::TRIAL_EARLY_STOPPED);
  EXPECT_EQ(Trial(1).reason(), "ConstraintBroken");
  EXPECT_EQ(Trial(1).message(),
            "at step 7 memory 18.25 > max 16: broken by 2.25, and its greatest value counts");
  EXPECT_FALSE(Experiment().status().current_optimal_trial().has_objective());
}

}  // namespace
}  // namespace shirabe::experiment
