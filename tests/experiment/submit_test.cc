// What may be asked of an experiment, at the one place that all doors share.
#include "experiment/submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/state/experiment_state.h"

namespace shirabe::experiment {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SubmitTest : public testing::Test {
 protected:
  SubmitTest() {
    experiment_.mutable_metadata()->set_name("digits");
    experiment_.mutable_metadata()->set_namespace_("ns");
    v1::ExperimentSpec& spec = *experiment_.mutable_spec();
    spec.mutable_objective()->set_type(v1::MINIMIZE);
    spec.set_parallel_trial_count(2);
    spec.set_max_trial_count(4);
    SetDefaults(experiment_);
  }

  void Store(const std::string& type, const std::string& reason) {
    v1::Condition* condition = experiment_.mutable_status()->add_conditions();
    condition->set_type(type);
    condition->set_status("True");
    condition->set_reason(reason);
    db::Batch batch;
    batch.experiment = key_;
    batch.put = {experiment_, 0};
    for (const v1::TrialPhase phase : {v1::TRIAL_SUCCEEDED, v1::TRIAL_RUNNING}) {
      v1::Trial trial;
      trial.set_namespace_(key_.ns);
      trial.set_experiment(key_.name);
      trial.set_number(static_cast<int64_t>(batch.trials.size()) + 1);
      trial.set_phase(phase);
      batch.trials.push_back({trial, 0});
    }
    ASSERT_TRUE(store_->Commit(batch).ok());
  }

  Status SendVerb(v1::Intent::Verb verb, int64_t trial = 0) {
    v1::Intent intent;
    intent.set_verb(verb);
    intent.set_trial(trial);
    if (verb == v1::Intent::SCALE) intent.set_max_trial_count(9);
    return Send(*store_, clock_, key_, intent);
  }

  size_t Intents() const { return store_->ListIntents(key_)->size(); }

  const ExperimentKey key_{"ns", "digits"};
  v1::Experiment experiment_;
  ManualClock clock_{absl::FromUnixSeconds(100'000)};
  std::unique_ptr<db::Store> store_ = db::Open("memory:").value();
};

TEST_F(SubmitTest, OneThatHasEndedForGoodIsNotScaled) {
  Store("Succeeded", "ExperimentMaxTrialsReached");
  const Status refused = SendVerb(v1::Intent::SCALE);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused),
              AllOf(HasSubstr("ns/digits"), HasSubstr("ExperimentMaxTrialsReached"),
                    HasSubstr("spec.resumePolicy is Never"), HasSubstr("metadata.name")));
  EXPECT_EQ(Intents(), 0u);
}

TEST_F(SubmitTest, AppliedAgainWithOtherCountsItSaysTheSame) {
  Store("Succeeded", "ExperimentMaxTrialsReached");
  v1::Experiment larger = experiment_;
  EXPECT_TRUE(Submit(*store_, clock_, larger).ok()) << "nothing has changed";
  larger.mutable_spec()->set_max_trial_count(9);
  EXPECT_TRUE(absl::IsFailedPrecondition(Submit(*store_, clock_, larger).status()));
  EXPECT_EQ(Intents(), 0u);
}

TEST_F(SubmitTest, OneThatMayBeResumedGoesOnAfterItsLastTrialOnly) {
  experiment_.mutable_spec()->set_resume_policy(v1::LONG_RUNNING);
  Store("Succeeded", "ExperimentMaxTrialsReached");
  EXPECT_TRUE(SendVerb(v1::Intent::SCALE).ok());
  EXPECT_EQ(Intents(), 1u);
}

TEST_F(SubmitTest, OneThatHasReachedItsGoalStaysSo) {
  experiment_.mutable_spec()->set_resume_policy(v1::FROM_VOLUME);
  Store("Succeeded", "ExperimentGoalReached");
  const Status refused = SendVerb(v1::Intent::SCALE);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("ExperimentGoalReached"));
}

TEST_F(SubmitTest, OneThatHasEndedIsPausedOrResumedOnlyIfItGoesOn) {
  experiment_.mutable_spec()->set_resume_policy(v1::LONG_RUNNING);
  Store("Succeeded", "ExperimentMaxTrialsReached");
  for (const auto verb : {v1::Intent::PAUSE, v1::Intent::RESUME}) {
    const Status refused = SendVerb(verb);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("with more trials (scale) it goes on"));
  }
  EXPECT_TRUE(SendVerb(v1::Intent::SCALE).ok());
  EXPECT_TRUE(SendVerb(v1::Intent::PAUSE).ok()) << "after what is to be done first";
  EXPECT_TRUE(SendVerb(v1::Intent::RESUME).ok());
}

TEST_F(SubmitTest, OneThatEndedWhilePausedIsResumed) {
  experiment_.mutable_status()->mutable_shirabe()->set_paused(true);
  Store("Succeeded", "ExperimentMaxTrialsReached");
  EXPECT_TRUE(SendVerb(v1::Intent::RESUME).ok());
  EXPECT_FALSE(SendVerb(v1::Intent::PAUSE).ok());
}

TEST_F(SubmitTest, OneThatRunsTakesEverything) {
  Store("Running", "ExperimentRunning");
  for (const auto verb : {v1::Intent::SCALE, v1::Intent::PAUSE, v1::Intent::RESUME}) {
    EXPECT_TRUE(SendVerb(verb).ok());
  }
  EXPECT_TRUE(SendVerb(v1::Intent::RETRY, 1).ok());
  EXPECT_EQ(Intents(), 4u);
}

TEST_F(SubmitTest, OnlyATrialThatHasEndedIsTriedAgain) {
  Store("Running", "ExperimentRunning");
  const Status running = SendVerb(v1::Intent::RETRY, 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(running)) << running;
  EXPECT_THAT(Message(running), AllOf(HasSubstr("digits-2"), HasSubstr("Running")));
  EXPECT_TRUE(absl::IsNotFound(SendVerb(v1::Intent::RETRY, 77)));
  EXPECT_EQ(Intents(), 0u);
}

TEST_F(SubmitTest, NothingOfOneThatHasEndedIsTriedAgain) {
  Store("Failed", "ExperimentFailed");
  const Status refused = SendVerb(v1::Intent::RETRY, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused), AllOf(HasSubstr("ns/digits has ended (ExperimentFailed)"),
                                      HasSubstr("spec.shirabe.start")));
}

TEST_F(SubmitTest, NothingIsTriedAgainBeyondTheLastTrial) {
  experiment_.mutable_status()->set_trials(4);
  Store("Running", "ExperimentRunning");
  const Status refused = SendVerb(v1::Intent::RETRY, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused),
              AllOf(HasSubstr("all 4 trials (spec.maxTrialCount)"), HasSubstr("--max-trials 5")));
}

TEST_F(SubmitTest, NoMoreAtTheSameTimeThanInAll) {
  Store("Running", "ExperimentRunning");
  v1::Intent intent;
  intent.set_verb(v1::Intent::SCALE);
  intent.set_parallel_trial_count(5);
  const Status refused = Send(*store_, clock_, key_, intent);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(Message(refused),
              HasSubstr("spec.parallelTrialCount: 5 is more than maxTrialCount 4"));
  intent.set_max_trial_count(5);
  EXPECT_TRUE(Send(*store_, clock_, key_, intent).ok());
  intent.clear_parallel_trial_count();
  intent.set_max_trial_count(1);
  EXPECT_TRUE(Send(*store_, clock_, key_, intent).ok());
  EXPECT_EQ(store_->ListIntents(key_)->back().parallel_trial_count(), 1);
}

// Of two who have read the same, one changes it; also before the owner has made the change.
TEST_F(SubmitTest, WhoeverHasReadWhatIsBeingChangedReadsAgain) {
  experiment_.mutable_metadata()->set_generation(3);
  Store("Running", "ExperimentRunning");
  v1::Experiment larger = experiment_;
  larger.mutable_spec()->set_max_trial_count(9);
  EXPECT_TRUE(Submit(*store_, clock_, larger, {.generation = 3}).ok());
  larger.mutable_spec()->set_max_trial_count(7);
  const Status refused = Submit(*store_, clock_, larger, {.generation = 3}).status();
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("is being changed"));
  EXPECT_TRUE(absl::IsAborted(Submit(*store_, clock_, larger, {.generation = 2}).status()));
  EXPECT_EQ(Intents(), 1u);
}

TEST_F(SubmitTest, OfThoseWhoMakeANewOneOneSucceeds) {
  experiment_.mutable_spec()->mutable_algorithm()->set_algorithm_name("random");
  std::atomic<int> made = 0;
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < 8; ++i) {
      writers.emplace_back([&] {
        const Status status = Submit(*store_, clock_, experiment_, {.absent = true}).status();
        EXPECT_TRUE(status.ok() || absl::IsAlreadyExists(status)) << status;
        made += status.ok();
      });
    }
  }
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(Submit(*store_, clock_, experiment_).ok()) << "without a condition it goes on";
}

TEST_F(SubmitTest, OnlyWhatIsThereIsChanged) {
  for (const Precondition& wanted :
       {Precondition{.present = true}, Precondition{.generation = 1}}) {
    EXPECT_TRUE(absl::IsNotFound(Submit(*store_, clock_, experiment_, wanted).status()));
  }
  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment(key_).status()));
}

TEST_F(SubmitTest, AnyIntentMayBeConditional) {
  experiment_.mutable_metadata()->set_generation(3);
  Store("Running", "ExperimentRunning");
  v1::Intent intent;
  intent.set_verb(v1::Intent::STOP);
  intent.set_generation(2);
  EXPECT_TRUE(absl::IsAborted(Send(*store_, clock_, key_, intent)));
  intent.set_generation(3);
  EXPECT_TRUE(Send(*store_, clock_, key_, intent).ok());
}

TEST_F(SubmitTest, WhatIsNotThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(SendVerb(v1::Intent::SCALE)));
}

}  // namespace
}  // namespace shirabe::experiment
