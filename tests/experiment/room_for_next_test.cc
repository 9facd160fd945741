// When the next trial is asked for where there was no room for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "experiment/conditions.h"
#include "tests/experiment/reconciler_fixture.h"
#include "trial/start_error.h"

namespace shirabe::experiment {
namespace {

using ::testing::SizeIs;

class RoomForNextTest : public ReconcilerTest {
 protected:
  RoomForNextTest() { Create("  parallelTrialCount: 1\n"); }

  std::string Waiting() { return store_->GetExperiment(kKey)->record.status().shirabe().waiting(); }
  size_t Trials() { return store_->ListTrials({.experiment = kKey})->size(); }
};

TEST_F(RoomForNextTest, IsAskedForAtOnceWhenThisPassMakesIt) {
  Pass();
  ASSERT_EQ(Trials(), 1u);
  // The slot is taken by what has ended, until the end is written.
  trial::AttemptStatus ended;
  ended.state = trial::AttemptStatus::State::kExited;
  ended.exit_code = 0;
  executor_.observed = ended;
  executor_.quote.waiting = "no free slot";
  EXPECT_EQ(Pass(), absl::ZeroDuration());
  EXPECT_THAT(executor_.forgotten, SizeIs(1));
  EXPECT_EQ(Waiting(), "");
}

TEST_F(RoomForNextTest, IsLookedForAgainWhereOthersHaveIt) {
  executor_.quote.waiting = "no free slot";
  EXPECT_GT(Pass(), absl::ZeroDuration());
  EXPECT_EQ(Waiting(), "no free slot");
  EXPECT_EQ(Trials(), 0u);
  executor_.quote.waiting.clear();
  reconciler_.Recheck(kKey);
  Pass();
  EXPECT_EQ(Trials(), 1u);
}

// It runs, and what stands beside its program is not heard of.
TEST_F(RoomForNextTest, ARunningTrialThatIsNotHeardOfSaysSoOnce) {
  Pass();
  trial::AttemptStatus running;
  *running.placement.mutable_start_time() = ToProto(clock_.Now());
  running.waiting = "its sidecar has not reached x:1";
  executor_.observed = running;
  const auto told = [&] {
    int count = 0;
    const auto events = store_->ListEvents({.experiment = kKey});
    for (const v1::Event& event : *events) {
      count += event.reason() == "SidecarUnreachable" && event.warning() &&
               event.message() == "its sidecar has not reached x:1";
    }
    return count;
  };
  const auto trial = [&] { return store_->GetTrial({kKey, 1})->record; };
  Pass();
  Pass();
  EXPECT_EQ(told(), 1);
  EXPECT_EQ(trial().phase(), v1::TRIAL_RUNNING);
  EXPECT_EQ(trial().waiting(), running.waiting);
  executor_.observed->waiting.clear();
  Pass();
  EXPECT_EQ(trial().waiting(), "");
  EXPECT_EQ(told(), 1);
}

// It is asked to end, and nobody may end it.
TEST_F(RoomForNextTest, AStopThatIsRefusedIsAnEvent) {
  Pass();
  trial::AttemptStatus running;
  *running.placement.mutable_start_time() = ToProto(clock_.Now());
  executor_.observed = running;
  Pass();
  Send(v1::Intent::STOP);
  Pass();
  executor_.observed->waiting = "it cannot be ended: no right";
  Pass();
  Pass();
  int told = 0;
  const auto events = store_->ListEvents({.experiment = kKey});
  for (const v1::Event& event : *events) told += event.reason() == "StopRefused";
  EXPECT_EQ(told, 1);
  EXPECT_EQ(store_->GetTrial({kKey, 1})->record.waiting(), "it cannot be ended: no right");
}

class UnpricedBudgetTest : public ReconcilerTest {
 protected:
  UnpricedBudgetTest() { Create("  shirabe: {budget: {maxCost: 5}}\n"); }

  std::string Condition() {
    const v1::Experiment experiment = store_->GetExperiment(kKey)->record;
    for (const v1::Condition& condition : experiment.status().conditions()) {
      if (condition.type() == "BudgetEnforced")
        return condition.status() + " " + condition.reason();
    }
    return "";
  }
  int Events() {
    int count = 0;
    const auto events = store_->ListEvents({.experiment = kKey});
    for (const v1::Event& event : *events) count += event.reason() == "BudgetNotEnforced";
    return count;
  }
};

TEST_F(UnpricedBudgetTest, IsSaidOnceAndTakenBackWithTheFirstPrice) {
  Pass();
  EXPECT_EQ(Condition(), "False NoPrices");
  EXPECT_EQ(CurrentCondition(store_->GetExperiment(kKey)->record).type(), "Running");
  Pass();
  TakeOver();
  Pass();
  EXPECT_EQ(Events(), 1);
  executor_.quote.price_per_hour = 2;
  Pass();
  EXPECT_EQ(Condition(), "");
  EXPECT_EQ(Events(), 1);
}

// What a pod of its trial names is not in its namespace.
TEST_F(RoomForNextTest, AReferenceThatIsMissingIsAnEventAndNoRetry) {
  executor_.start =
      trial::StartError(absl::StatusCode::kResourceExhausted, trial::kReferenceMissing,
                        "Secret hf is missing in namespace lab");
  const auto told = [&] {
    int count = 0;
    const auto events = store_->ListEvents({.experiment = kKey});
    for (const v1::Event& event : *events) count += event.reason() == "ReferenceMissing";
    return count;
  };
  for (int i = 0; i < 20; ++i) {
    Pass();
    clock_.Advance(absl::Seconds(10));
  }
  EXPECT_EQ(told(), 1);
  TakeOver();
  Pass();
  EXPECT_EQ(told(), 1) << "nor is it said again by another controller";
  EXPECT_LE(Pass(), absl::Seconds(10)) << "it is looked for again soon";
  const auto trial = store_->GetTrial({kKey, 1});
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->record.waiting(), "Secret hf is missing in namespace lab");
  EXPECT_EQ(Waiting(), trial->record.waiting());
  EXPECT_EQ(trial->record.attempts(), 1);
  EXPECT_EQ(trial->record.failures(), 0);
  executor_.start = absl::OkStatus();
  clock_.Advance(absl::Seconds(10));
  Pass();
  EXPECT_EQ(store_->GetTrial({kKey, 1})->record.attempts(), 1);
}

// An experiment that was applied before the operator of its trials' kind.
class MissingKindTest : public ReconcilerTest {
 protected:
  MissingKindTest() {
    Create("");
    executor_.start = absl::UnimplementedError("a TrainJob, which this cluster does not know");
  }

  std::vector<std::string> Conditions(const std::string& type = "TrialKindKnown") {
    std::vector<std::string> found;
    const v1::Experiment experiment = store_->GetExperiment(kKey)->record;
    for (const v1::Condition& condition : experiment.status().conditions()) {
      if (condition.type() != type) continue;
      found.push_back(condition.status() + " " + condition.reason() + ": " + condition.message());
    }
    return found;
  }
  int Events(const std::string& reason) {
    int count = 0;
    const auto events = store_->ListEvents({.experiment = kKey});
    for (const v1::Event& event : *events) count += event.reason() == reason;
    return count;
  }
  std::string Current() { return CurrentCondition(store_->GetExperiment(kKey)->record).type(); }

  // While nothing can start, and taken back, with an event of the condition's name, once it can.
  void ExpectCondition(const std::string& event, const std::string& type,
                       const std::string& reason) {
    const std::string words = "what is missing, and who can add it";
    executor_.start = trial::StartError(absl::StatusCode::kResourceExhausted, event, words);
    for (int i = 0; i < 3; ++i) {
      Pass();
      clock_.Advance(absl::Seconds(10));
    }
    EXPECT_THAT(Conditions(type), testing::ElementsAre("False " + reason + ": " + words));
    EXPECT_EQ(Events(event), 1);
    EXPECT_EQ(Current(), "Running");
    EXPECT_EQ(store_->GetTrial({kKey, 1})->record.waiting(), words);
    EXPECT_EQ(store_->GetTrial({kKey, 1})->record.failures(), 0);
    executor_.start = absl::OkStatus();
    clock_.Advance(absl::Seconds(10));
    Pass();
    Pass();
    EXPECT_THAT(Conditions(type), testing::IsEmpty());
    EXPECT_EQ(Events(type), 1);
  }
};

TEST_F(MissingKindTest, ItWaitsAndGoesOnByItself) {
  for (int i = 0; i < 3; ++i) {
    Pass();
    clock_.Advance(absl::Seconds(10));
  }
  EXPECT_THAT(Conditions(), testing::ElementsAre(
                                "False NoSuchKind: a TrainJob, which this cluster does not know"));
  EXPECT_EQ(Events("TrialKindMissing"), 1);
  EXPECT_EQ(Current(), "Running") << "it has not failed";
  const auto trial = store_->GetTrial({kKey, 1});
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->record.waiting(), "a TrainJob, which this cluster does not know");
  TakeOver();
  Pass();
  EXPECT_EQ(Events("TrialKindMissing"), 1) << "nor is it said again by another controller";
  EXPECT_LE(Pass(), absl::Seconds(10)) << "it is looked for again soon";

  executor_.start = absl::OkStatus();
  clock_.Advance(absl::Seconds(10));
  Pass();
  Pass();
  EXPECT_THAT(Conditions(), testing::IsEmpty());
  EXPECT_EQ(Events("TrialKindFound"), 1);
}

// In a namespace whose account may not make the kind: told once, whatever the number of trials.
TEST_F(MissingKindTest, AnAccountWithoutTheRightIsACondition) {
  ExpectCondition(trial::kAccountRefused, "TrialAccountAllowed", "MissingRight");
}

// After an upgrade that lost the pools, say: nothing has failed once they are back.
TEST_F(MissingKindTest, APoolThatIsNotThereIsACondition) {
  ExpectCondition(trial::kPoolMissing, "PoolsKnown", "NoSuchPool");
}

// That it cannot be asked whether it is there says nothing of the kind.
TEST_F(MissingKindTest, OtherReasonsToWaitTakeNothingBack) {
  Pass();
  executor_.start = absl::UnavailableError("the API server is away");
  clock_.Advance(absl::Seconds(10));
  Pass();
  EXPECT_THAT(Conditions(), SizeIs(1));
  EXPECT_EQ(Events("TrialKindFound"), 0);
}

}  // namespace
}  // namespace shirabe::experiment
