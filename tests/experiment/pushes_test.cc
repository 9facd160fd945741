// What is pushed without a step: which of it is known already, and which is the next one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;

class PushesTest : public ReconcilerTest {
 protected:
  PushesTest() {
    Create("  parallelTrialCount: 1\n  shirabe: {attempts: {maxFailures: 3}}\n");
    Pass();  // makes the trial
    Run(std::nullopt);
  }

  // The attempt that was started last runs.
  void Run(const std::optional<v1::Checkpoint>& resumed, bool known = true) {
    trial::AttemptStatus running;
    *running.placement.mutable_start_time() = ToProto(clock_.Now());
    running.begin_known = known;
    running.resumed = resumed;
    executor_.observed = running;
    clock_.Advance(absl::Seconds(1));
    Pass();
  }
  // A failure; the next attempt is started.
  void Fail() {
    executor_.observed->state = trial::AttemptStatus::State::kExited;
    executor_.observed->exit_code = 1;
    Pass();
    executor_.observed.reset();
    Pass();
  }
  v1::Checkpoint Save(int64_t step) {
    v1::Checkpoint save;
    save.set_namespace_(kKey.ns);
    save.set_experiment(kKey.name);
    save.set_trial(1);
    save.set_attempt(1);
    save.set_step(step);
    executor_.observed->checkpoints.push_back(save);
    clock_.Advance(absl::Seconds(1));
    Pass();
    return store_->ListCheckpoints({kKey, 1})->at(0).record;
  }
  void Push(int32_t attempt, int64_t second, double value) {
    const Status pushed = TryPush(attempt, second, value);
    ASSERT_TRUE(pushed.ok()) << pushed;
  }
  Status TryPush(int32_t attempt, int64_t second, double value) {
    auto pending_report = std::make_shared<PendingReport>();  // shared with the inbox
    pending_report->report = {.trial = {kKey, 1}, .attempt = attempt};
    pending_report->report.points.push_back({.metric = "loss",
                                             .value = value,
                                             .implicit_step = true,
                                             .time = absl::FromUnixSeconds(second)});
    EXPECT_TRUE(reconciler_.ReportQueueOf(kKey)->Put(pending_report).ok());
    Pass();
    return pending_report->answer.status();
  }
  // "1@2=0.5": attempt, step, value.
  std::vector<std::string> Rows() {
    std::vector<std::string> rows;
    const auto counted = store_->ListObservations({.trial = {kKey, 1}});
    for (const db::StoredObservation& row : *counted) {
      rows.push_back(absl::StrCat(row.attempt, "@", row.step, "=", row.value));
    }
    return rows;
  }
};

TEST_F(PushesTest, OneOfTheSameTimeComesAgain) {
  Push(1, 10, 0.5);
  Push(1, 11, 0.25);
  Push(1, 10, 0.5);
  EXPECT_THAT(Rows(), ElementsAre("1@1=0.5", "1@2=0.25"));
}

// A clock may have been set back, and the program says what it says.
TEST_F(PushesTest, OneOfTheTimeOfAnEarlierAttemptsIsNew) {
  Push(1, 10, 0.5);
  Push(1, 11, 0.25);
  const v1::Checkpoint saved = Save(2);
  Push(1, 12, 0.2);
  Fail();
  Run(saved);
  Push(2, 11, 0.125);
  Push(2, 12, 0.1);
  EXPECT_THAT(Rows(), ElementsAre("1@1=0.5", "1@2=0.25", "2@3=0.125", "2@4=0.1"));
}

// A pod's program may run before its sidecar is heard of, and its machine may go before that.
TEST_F(PushesTest, WhatWasReportedStandsUntilItIsToldWhereTheNextAttemptBegan) {
  Push(1, 10, 0.5);
  const v1::Checkpoint saved = Save(1);
  Push(1, 11, 0.25);
  Fail();
  Run(std::nullopt, /*known=*/false);
  EXPECT_THAT(Rows(), ElementsAre("1@1=0.5", "1@2=0.25"));
  EXPECT_TRUE(absl::IsUnavailable(TryPush(2, 12, 0.125))) << "which step that is is not known";
  Fail();
  EXPECT_THAT(Rows(), ElementsAre("1@1=0.5", "1@2=0.25"));
  Run(std::nullopt, /*known=*/false);
  executor_.observed->begin_known = true;
  executor_.observed->resumed = saved;
  Pass();
  EXPECT_THAT(Rows(), ElementsAre("1@1=0.5"));
  const auto attempts = store_->ListAttempts({.experiment = kKey, .trial = 1});
  ASSERT_EQ(attempts->size(), 3u);
  EXPECT_EQ(attempts->at(1).record.resumed_from_step(), 0);
  EXPECT_EQ(attempts->at(2).record.resumed_from_step(), 1);
  Push(3, 12, 0.125);
  EXPECT_THAT(Rows(), ElementsAre("1@1=0.5", "3@2=0.125"));
}

}  // namespace
}  // namespace shirabe::experiment
