// What a user asks of a running experiment: a point to try, a trial to stop, notes and tags; and
// the limit of a trial's time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "experiment/annotations.h"
#include "experiment/conditions.h"
#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SteeringTest : public ReconcilerTest {
 protected:
  using Values = std::vector<std::pair<std::string, std::string>>;

  Status SendIntent(v1::Intent intent) {
    intent.mutable_actor()->set_name("ann");
    const Status sent = experiment::Send(*store_, clock_, kKey, std::move(intent));
    reconciler_.NotifyIntent(kKey);
    return sent;
  }
  static v1::Intent Try(const Values& values, int64_t like = 0) {
    v1::Intent intent;
    intent.set_verb(v1::Intent::TRY);
    intent.set_trial(like);
    for (const auto& [name, value] : values) {
      (*intent.mutable_point()->mutable_fields())[name].set_string_value(value);
    }
    return intent;
  }
  static v1::Intent StopTrialIntent(int64_t number) {
    v1::Intent intent;
    intent.set_verb(v1::Intent::STOP_TRIAL);
    intent.set_trial(number);
    return intent;
  }
  static v1::Intent Note(int64_t trial, const std::string& note,
                         const std::vector<std::string>& tags = {}) {
    v1::Intent intent;
    intent.set_verb(v1::Intent::ANNOTATE);
    intent.set_trial(trial);
    intent.set_note(note);
    intent.mutable_add_tags()->Assign(tags.begin(), tags.end());
    return intent;
  }
  // Its only trial has reported 0.5, lost its first attempt, and waits for the next one.
  void CreateWithWaitingTrial(const std::string& more) {
    Create("  parallelTrialCount: 1\n" + more);
    Pass();
    RunTrial();
    Report(1, 0.5);
    executor_.observed->state = trial::AttemptStatus::State::kLost;
    Pass();
    ASSERT_EQ(Trial(1).phase(), v1::TRIAL_PENDING);
  }
  v1::Trial Trial(int64_t number) { return store_->GetTrial({kKey, number})->record; }
  v1::Experiment Experiment() { return store_->GetExperiment(kKey)->record; }
  std::vector<std::string> Reasons() {
    std::vector<std::string> reasons;
    const auto events = store_->ListEvents({.experiment = kKey});
    for (const v1::Event& event : *events) reasons.push_back(event.reason());
    return reasons;
  }
  // The attempt that was started last runs.
  void RunTrial() {
    trial::AttemptStatus running;
    *running.placement.mutable_start_time() = ToProto(clock_.Now());
    executor_.observed = running;
    clock_.Advance(absl::Seconds(1));
    Pass();
  }
  void Report(int64_t trial, double value) {
    auto pending_report = std::make_shared<PendingReport>();  // shared with the queue
    pending_report->report = {.trial = {kKey, trial}, .attempt = 0};
    pending_report->report.points.push_back({.metric = "loss", .value = value, .step = 1});
    ASSERT_TRUE(reconciler_.ReportQueueOf(kKey)->Put(pending_report).ok());
    Pass();
    ASSERT_TRUE(pending_report->answer.ok()) << pending_report->answer.status();
  }
  void Exit(int code) {
    executor_.observed->state = trial::AttemptStatus::State::kExited;
    executor_.observed->exit_code = code;
    Pass();
    executor_.observed.reset();
  }
};

TEST_F(SteeringTest, APointComesBeforeThoseOfTheAlgorithm) {
  Create("  parallelTrialCount: 1\n");
  ASSERT_TRUE(SendIntent(Try({{"lr", "0.02"}, {"optimizer", "adam"}})).ok());
  Pass();
  Pass();
  const v1::Trial trial = Trial(1);
  EXPECT_EQ(trial.assignments(0).number(), 0.02);
  EXPECT_EQ(trial.assignments(3).category(), "adam");
  EXPECT_EQ(trial.explanation(), "asked for by ann: lr, optimizer; the others at random");
  EXPECT_TRUE(Experiment().status().has_start_time());
  EXPECT_EQ(CurrentCondition(Experiment()).type(), "Running");
  EXPECT_EQ(Experiment().status().trials(), 1) << "the only place is taken";
  EXPECT_THAT(Reasons(), Contains("TryRequested"));
}

// As one that was sent while it still ran.
TEST_F(SteeringTest, APauseThatComesAfterTheEndIsPassedOver) {
  Create("  parallelTrialCount: 1\n");
  v1::Intent intent;
  intent.set_verb(v1::Intent::STOP);
  ASSERT_TRUE(SendIntent(intent).ok());
  for (int i = 0; i < 5 && !IsEnded(Experiment()); ++i) Pass();
  ASSERT_TRUE(IsEnded(Experiment()));
  intent.set_verb(v1::Intent::PAUSE);
  intent.set_namespace_(kKey.ns);
  intent.set_experiment(kKey.name);
  intent.mutable_actor()->set_name("ann");
  db::Batch batch{.experiment = kKey};
  batch.intents.push_back(intent);
  ASSERT_TRUE(store_->Commit(batch).ok());
  reconciler_.NotifyIntent(kKey);
  Pass();
  EXPECT_THAT(*store_->ListIntents(kKey), IsEmpty());
  EXPECT_FALSE(Experiment().status().shirabe().paused());
  EXPECT_THAT(Reasons(), Not(Contains("PauseRequested")));
}

TEST_F(SteeringTest, APointSurvivesARestartAndIsTriedOnce) {
  Create("  parallelTrialCount: 1\n  shirabe: {seed: 5}\n");
  ASSERT_TRUE(SendIntent(Try({{"lr", "0.02"}})).ok());
  TakeOver();
  Pass();
  TakeOver();
  Pass();
  EXPECT_EQ(Experiment().status().trials(), 1);
  EXPECT_THAT(*store_->ListIntents(kKey), IsEmpty());
  ASSERT_TRUE(SendIntent(Try({{"lr", "0.02"}})).ok());
  Pass();
  EXPECT_EQ(Trial(2).point().x(0), Trial(1).point().x(0));
  EXPECT_NE(Trial(2).point().SerializeAsString(), Trial(1).point().SerializeAsString())
      << "what is left open is drawn again";
}

TEST_F(SteeringTest, TheOthersAreThoseOfTheTrialItIsLike) {
  Create("  parallelTrialCount: 1\n");
  Pass();
  ASSERT_TRUE(SendIntent(Try({{"units", "8"}}, 1)).ok());
  Pass();
  const v1::Trial first = Trial(1), second = Trial(2);
  EXPECT_EQ(second.assignments(1).integer(), 8);
  for (const int other : {0, 2, 3}) {
    EXPECT_EQ(second.assignments(other).SerializeAsString(),
              first.assignments(other).SerializeAsString());
  }
  EXPECT_THAT(second.explanation(), HasSubstr("units; the others as in trial 1"));
  EXPECT_EQ(second.phase(), v1::TRIAL_PENDING);
}

TEST_F(SteeringTest, PointsOutsideOfTheSpaceAreRefusedByName) {
  Create("");
  const auto refused = [&](const Values& values) {
    const Status status = SendIntent(Try(values));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return Message(status);
  };
  EXPECT_THAT(refused({{"lr", "7"}}), HasSubstr("parameter \"lr\": 7 is not within"));
  EXPECT_THAT(refused({{"lr", "fast"}}), HasSubstr("\"lr\" must be a number, not \"fast\""));
  EXPECT_THAT(refused({{"lr", "nan"}}), HasSubstr("lr"));
  EXPECT_THAT(refused({{"optimizer", "rms"}}), HasSubstr("has no value \"rms\" in its list"));
  EXPECT_THAT(refused({{"rl", "0.01"}}),
              HasSubstr("parameter \"rl\" does not exist; known: lr, units"));
  EXPECT_THAT(refused({}), HasSubstr("parameters: give the value of one at least"));
  EXPECT_THAT(refused({{"lr", std::string(100'000, '1')}}), HasSubstr("no point of a space"));
  EXPECT_TRUE(absl::IsNotFound(SendIntent(Try({{"lr", "0.01"}}, 77))));
  EXPECT_TRUE(absl::IsInvalidArgument(SendIntent(Try({{"lr", "0.01"}}, -1))));
  EXPECT_THAT(*store_->ListIntents(kKey), IsEmpty());
}

TEST_F(SteeringTest, PointsCountTowardsMaxTrialCount) {
  Create("  parallelTrialCount: 1\n");
  for (int i = 0; i < 12; ++i) (void)SendIntent(Try({{"lr", "0.02"}}));
  Pass();
  EXPECT_EQ(Experiment().status().trials(), 10);
  EXPECT_THAT(Reasons(), Contains("TryRefused")) << "the last two were sent before the first pass";
  EXPECT_TRUE(absl::IsFailedPrecondition(SendIntent(Try({{"lr", "0.02"}}))));
}

TEST_F(SteeringTest, AStoppedTrialKeepsItsBestValue) {
  Create("  parallelTrialCount: 1\n");
  Pass();
  RunTrial();
  Report(1, 0.5);
  ASSERT_TRUE(SendIntent(StopTrialIntent(1)).ok());
  Pass();
  EXPECT_EQ(executor_.graces.size(), 1u) << "with the time that it has to save";
  Exit(1);
  const v1::Trial trial = Trial(1);
  EXPECT_EQ(trial.phase(), v1::TRIAL_EARLY_STOPPED);
  EXPECT_EQ(trial.reason(), "StoppedByUser");
  EXPECT_EQ(trial.objective(), 0.5);
  EXPECT_EQ(Experiment().status().current_optimal_trial().best_trial_name(), "good-1");
  EXPECT_THAT(Reasons(), Contains("TrialStopRequested"));
  EXPECT_TRUE(SendIntent(StopTrialIntent(1)).ok()) << "once more changes nothing";
  Pass();
  EXPECT_EQ(Trial(1).SerializeAsString(), trial.SerializeAsString());
  EXPECT_TRUE(absl::IsNotFound(SendIntent(StopTrialIntent(77))));
  EXPECT_TRUE(absl::IsInvalidArgument(SendIntent(StopTrialIntent(0))));
}

TEST_F(SteeringTest, AStoppedTrialWithoutAValueWasKilled) {
  Create("  parallelTrialCount: 1\n");
  Pass();
  ASSERT_TRUE(SendIntent(Try({{"lr", "0.02"}})).ok());
  Pass();
  ASSERT_TRUE(SendIntent(StopTrialIntent(2)).ok());  // it waits
  Pass();
  EXPECT_EQ(Trial(2).phase(), v1::TRIAL_KILLED);
  RunTrial();
  ASSERT_TRUE(SendIntent(StopTrialIntent(1)).ok());
  Pass();
  Exit(0);
  EXPECT_EQ(Trial(1).phase(), v1::TRIAL_KILLED);
  EXPECT_EQ(Trial(1).reason(), "StoppedByUser");
  EXPECT_EQ(Experiment().status().trials_failed(), 0);
}

// What it has paid for counts: its trial that runs ends as one that is stopped by itself.
TEST_F(SteeringTest, ATrialThatRunsAtTheEndOfTheExperimentKeepsItsBestValue) {
  Create("  parallelTrialCount: 1\n");
  Pass();
  ASSERT_TRUE(SendIntent(Try({{"lr", "0.02"}})).ok());
  Pass();
  RunTrial();
  Report(1, 0.5);
  v1::Intent stop;
  stop.set_verb(v1::Intent::STOP);
  ASSERT_TRUE(SendIntent(stop).ok());
  Pass();
  Exit(1);
  const v1::Trial trial = Trial(1);
  EXPECT_EQ(trial.phase(), v1::TRIAL_EARLY_STOPPED);
  EXPECT_EQ(trial.reason(), "ExperimentEnded");
  EXPECT_EQ(trial.message(), "the experiment has ended");
  EXPECT_EQ(trial.objective(), 0.5);
  EXPECT_EQ(Trial(2).phase(), v1::TRIAL_KILLED) << "it has never run";
  EXPECT_EQ(Trial(2).reason(), "ExperimentEnded");
  const v1::Experiment experiment = Experiment();
  EXPECT_EQ(experiment.status().current_optimal_trial().best_trial_name(), "good-1");
  EXPECT_EQ(CurrentCondition(experiment).type(), "Succeeded") << "it has a result";
}

TEST_F(SteeringTest, ATrialThatWaitsForItsNextAttemptAtTheEndKeepsItsValueToo) {
  CreateWithWaitingTrial("");
  v1::Intent stop;
  stop.set_verb(v1::Intent::STOP);
  ASSERT_TRUE(SendIntent(stop).ok());
  Pass();
  Pass();
  EXPECT_EQ(Trial(1).phase(), v1::TRIAL_EARLY_STOPPED);
  EXPECT_EQ(Experiment().status().current_optimal_trial().best_trial_name(), "good-1");
}

// As of one that is stopped while it runs: the algorithm is not told half a result.
TEST_F(SteeringTest, ATrialThatIsStoppedWhileItWaitsWithHalfAResultIsInfeasible) {
  CreateWithWaitingTrial(
      "  shirabe: {additionalObjectives: [{metricName: seconds, type: minimize}]}\n");
  ASSERT_TRUE(SendIntent(StopTrialIntent(1)).ok());
  Pass();
  const v1::Trial trial = Trial(1);
  EXPECT_EQ(trial.phase(), v1::TRIAL_EARLY_STOPPED);
  EXPECT_TRUE(trial.infeasible());
  EXPECT_EQ(trial.message(),
            "stopped by a user; seconds was never reported: spec.shirabe.additionalObjectives asks "
            "for it");
  EXPECT_EQ(Experiment().status().shirabe().trials_infeasible(), 1);
  EXPECT_FALSE(Experiment().status().current_optimal_trial().has_objective());
}

TEST_F(SteeringTest, ATrialOverItsTimeKeepsItsBestValue) {
  Create("  parallelTrialCount: 1\n  shirabe: {limits: {trialSeconds: 60}}\n");
  Pass();
  RunTrial();
  Report(1, 0.5);
  clock_.Advance(absl::Seconds(40));
  const absl::Duration wake = Pass();
  EXPECT_LE(wake, absl::Seconds(20));
  EXPECT_THAT(executor_.graces, IsEmpty());
  clock_.Advance(absl::Seconds(20));
  Pass();
  EXPECT_EQ(executor_.graces.size(), 1u);
  Exit(75);
  EXPECT_EQ(Trial(1).phase(), v1::TRIAL_EARLY_STOPPED);
  EXPECT_EQ(Trial(1).reason(), "TimeLimit");
  EXPECT_THAT(Trial(1).message(), HasSubstr("60 s (limits.trialSeconds)"));
}

TEST_F(SteeringTest, ATrialOverItsTimeWithoutAValueHasFailed) {
  Create(
      "  parallelTrialCount: 1\n"
      "  shirabe: {limits: {trialSeconds: 60}, attempts: {maxFailures: 5}}\n");
  Pass();
  RunTrial();
  clock_.Advance(absl::Seconds(61));
  Pass();
  Exit(1);
  EXPECT_EQ(Trial(1).phase(), v1::TRIAL_FAILED);
  EXPECT_EQ(Trial(1).reason(), "DeadlineExceeded");
  EXPECT_EQ(Trial(1).attempts(), 1) << "never retried";
}

TEST_F(SteeringTest, TheTimeOfATrialIsThatOfAllItsAttempts) {
  Create(
      "  parallelTrialCount: 1\n"
      "  shirabe: {limits: {trialSeconds: 60}, attempts: {maxFailures: 5}}\n");
  Pass();
  RunTrial();
  Report(1, 0.5);
  clock_.Advance(absl::Seconds(50));
  executor_.observed->ran = absl::Seconds(51);
  Exit(1);  // which is retried
  clock_.Advance(absl::Minutes(5));
  Pass();
  TakeOver();
  RunTrial();
  Report(1, 0.25);  // it began again, so that what it reported before does not count
  clock_.Advance(absl::Seconds(10));
  Pass();
  EXPECT_EQ(executor_.graces.size(), 1u);
  Exit(0);
  EXPECT_EQ(Trial(1).reason(), "TimeLimit");
  EXPECT_EQ(Trial(1).attempts(), 2);
}

TEST_F(SteeringTest, NotesAndTagsOfWhatRunsAreTheOwners) {
  Create("  parallelTrialCount: 1\n");
  Pass();
  ASSERT_TRUE(SendIntent(Note(0, "# plan\nlr first", {"thesis", "gpu"})).ok());
  ASSERT_TRUE(SendIntent(Note(1, "diverges", {"odd"})).ok());
  EXPECT_EQ(store_->ListIntents(kKey)->size(), 2u) << "another process owns it";
  Pass();
  EXPECT_EQ(Experiment().status().shirabe().note(), "# plan\nlr first");
  EXPECT_THAT(Experiment().status().shirabe().tags(), ElementsAre("thesis", "gpu"));
  EXPECT_EQ(Trial(1).note(), "diverges");
  v1::Intent untag;
  untag.set_verb(v1::Intent::ANNOTATE);
  untag.add_remove_tags("thesis");
  untag.add_add_tags("gpu");
  ASSERT_TRUE(SendIntent(untag).ok());
  Pass();
  EXPECT_THAT(Experiment().status().shirabe().tags(), ElementsAre("gpu"));
  EXPECT_EQ(Experiment().status().shirabe().note(), "# plan\nlr first") << "it was not asked for";
  EXPECT_EQ(Experiment().metadata().generation(), 1) << "its specification is the same";
}

TEST_F(SteeringTest, ATrialThatHasEndedIsAnnotatedTwiceInOnePass) {
  Create("  parallelTrialCount: 1\n");
  Pass();
  RunTrial();
  Report(1, 0.5);
  Exit(0);
  Pass();
  ASSERT_TRUE(SendIntent(Note(1, "first", {"a"})).ok());
  ASSERT_TRUE(SendIntent(Note(1, "second", {"b"})).ok());
  Pass();
  EXPECT_EQ(Trial(1).note(), "second");
  EXPECT_THAT(Trial(1).tags(), ElementsAre("a", "b"));
  EXPECT_EQ(Trial(1).phase(), v1::TRIAL_SUCCEEDED);
}

TEST_F(SteeringTest, WhereNobodyOwnsItANoteIsWrittenAtOnce) {
  Create("  parallelTrialCount: 1\n");
  Pass();
  ASSERT_TRUE(store_->ReleaseLease({kKey, epoch_}).ok());
  ASSERT_TRUE(SendIntent(Note(0, "later")).ok());
  ASSERT_TRUE(SendIntent(Note(1, "", {"seen"})).ok());
  EXPECT_THAT(*store_->ListIntents(kKey), IsEmpty());
  EXPECT_EQ(Experiment().status().shirabe().note(), "later");
  EXPECT_THAT(Trial(1).tags(), ElementsAre("seen"));
  EXPECT_EQ(store_->GetLease(kKey)->holder(), "") << "and the lease is free again";
  EXPECT_THAT(Reasons(), Contains("AnnotationChanged"));
}

TEST_F(SteeringTest, HostileNotesAndTagsAreRefused) {
  Create("");
  const auto refused = [&](const v1::Intent& intent) {
    const Status status = SendIntent(intent);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return Message(status);
  };
  v1::Intent nothing;
  nothing.set_verb(v1::Intent::ANNOTATE);
  EXPECT_THAT(refused(nothing), HasSubstr("give one of note, addTags and removeTags"));
  EXPECT_THAT(refused(Note(0, std::string(kMaxNoteBytes + 1, 'x'))),
              HasSubstr("note: has 16385 bytes, and at most 16384 are taken"));
  Pass();
  EXPECT_THAT(refused(Note(1, std::string(kMaxTrialNoteBytes + 1, 'x'))), HasSubstr("4096"));
  EXPECT_THAT(refused(Note(0, "\x1b[2J")), HasSubstr("control characters"));
  EXPECT_THAT(refused(Note(0, "", {""})), HasSubstr("addTags[0]: must not be empty"));
  EXPECT_THAT(refused(Note(0, "", {"ok", "a\nb"})), HasSubstr("addTags[1]"));
  EXPECT_THAT(refused(Note(0, "", {"a,b"})), HasSubstr("without commas"));
  EXPECT_THAT(refused(Note(0, "", {" a"})), HasSubstr("without blanks around"));
  EXPECT_THAT(refused(Note(0, "", {std::string(64, 'x')})), HasSubstr("at most 63"));
  std::vector<std::string> many;
  for (int i = 0; i < 17; ++i) many.push_back(absl::StrCat("t", i));
  EXPECT_THAT(refused(Note(0, "", many)), HasSubstr("at most 16"));
  many.pop_back();
  ASSERT_TRUE(SendIntent(Note(0, "", many)).ok());
  Pass();
  EXPECT_THAT(refused(Note(0, "", {"one more"})), HasSubstr("it would have 17 tags"));
}

TEST_F(SteeringTest, TheRuleThatEndsItIsRecorded) {
  Create("  parallelTrialCount: 1\n  shirabe: {stopWhen: {noImprovementTrials: 1}}\n");
  for (int64_t trial = 1; trial <= 2; ++trial) {
    Pass();
    RunTrial();
    Report(trial, 0.5);
    Exit(0);
  }
  Pass();
  TakeOver();
  Pass();
  const v1::Condition condition = CurrentCondition(Experiment());
  EXPECT_EQ(condition.type(), "Succeeded");
  EXPECT_EQ(condition.reason(), "ExperimentNoImprovement");
  EXPECT_EQ(Experiment().status().shirabe().stop_rule().rule(), "stopWhen.noImprovementTrials");
  EXPECT_EQ(Experiment().status().shirabe().stop_rule().results(), 2);
  EXPECT_THAT(Reasons(), Contains("ExperimentNoImprovement"));
  EXPECT_EQ(Experiment().status().trials(), 2);
}

// They are found by the number of their trial: what is asked for meanwhile takes the place of none.
TEST_F(SteeringTest, APointComesAfterTheStartPoints) {
  Create(
      "  parallelTrialCount: 1\n"
      "  shirabe: {start: [{lr: \"0.01\", units: \"8\", batch: \"16\", optimizer: sgd}]}\n");
  ASSERT_TRUE(SendIntent(Try({{"lr", "0.02"}})).ok());
  for (int i = 0; i < 3; ++i) Pass();
  EXPECT_EQ(Trial(1).explanation(), "a start point of the specification");
  clock_.Advance(absl::Seconds(1));
  Pass();
  EXPECT_EQ(Trial(2).assignments(0).number(), 0.02);
  EXPECT_THAT(*store_->ListIntents(kKey), IsEmpty());
}

TEST_F(SteeringTest, WhatIsAnnotatedAsItIsIsNoChange) {
  Create("  parallelTrialCount: 1\n");
  Pass();
  for (const int64_t trial : {0, 1, 0, 1}) {
    ASSERT_TRUE(SendIntent(Note(trial, "diverges", {"odd"})).ok());
    Pass();
  }
  const std::vector<std::string> reasons = Reasons();
  EXPECT_EQ(std::count(reasons.begin(), reasons.end(), "AnnotationChanged"), 2);
}

TEST_F(SteeringTest, TheTimeSinceItsEndDoesNotCountOnceItGoesOn) {
  Create(
      "  parallelTrialCount: 1\n  resumePolicy: LongRunning\n"
      "  shirabe: {limits: {experimentSeconds: 3600}}\n");
  for (int64_t trial = 1; trial <= 10; ++trial) {
    Pass();
    RunTrial();
    Report(trial, 0.5);
    Exit(0);
  }
  Pass();
  ASSERT_EQ(CurrentCondition(Experiment()).reason(), "ExperimentMaxTrialsReached");
  clock_.Advance(absl::Hours(5));
  v1::Intent more;
  more.set_verb(v1::Intent::SCALE);
  more.set_max_trial_count(12);
  ASSERT_TRUE(SendIntent(more).ok());
  for (int i = 0; i < 3; ++i) Pass();
  EXPECT_FALSE(Experiment().status().shirabe().has_stop_rule());
  EXPECT_EQ(Experiment().status().trials(), 11);
}

TEST_F(SteeringTest, RequestsOfAnySizeAndNumberAreNotKept) {
  Create("  parallelTrialCount: 1\n");
  v1::Intent large;
  large.set_verb(v1::Intent::PAUSE);
  (*large.mutable_point()->mutable_fields())["lr"].set_string_value(std::string(200'000, '1'));
  EXPECT_THAT(Message(SendIntent(large)), HasSubstr("bytes, and at most 131072 are taken"));
  Status last;
  for (int i = 0; i < 1100 && last.ok(); ++i) last = SendIntent(Try({{"lr", "0.02"}}));
  EXPECT_TRUE(absl::IsResourceExhausted(last)) << last;
  EXPECT_THAT(Message(last), HasSubstr("1000 requests wait for the owner"));
}

}  // namespace
}  // namespace shirabe::experiment
