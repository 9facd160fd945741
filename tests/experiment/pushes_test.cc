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
  void Run(const std::optional<v1::Checkpoint>& resumed) {
    trial::Sighting running;
    *running.placement.mutable_start_time() = ToProto(clock_.Now());
    running.resumed = resumed;
    executor_.sighting = running;
    clock_.Advance(absl::Seconds(1));
    Pass();
  }
  // A failure; the next attempt is started.
  void Fail() {
    executor_.sighting->state = trial::Sighting::State::kExited;
    executor_.sighting->exit_code = 1;
    Pass();
    executor_.sighting.reset();
    Pass();
  }
  v1::Checkpoint Save(int64_t step) {
    v1::Checkpoint save;
    save.set_namespace_(kKey.ns);
    save.set_experiment(kKey.name);
    save.set_trial(1);
    save.set_attempt(1);
    save.set_step(step);
    executor_.sighting->checkpoints.push_back(save);
    clock_.Advance(absl::Seconds(1));
    Pass();
    return store_->ListCheckpoints({kKey, 1})->at(0).record;
  }
  void Push(int32_t attempt, int64_t second, double value) {
    auto letter = std::make_shared<Letter>();  // shared with the inbox
    letter->report = {.trial = {kKey, 1}, .attempt = attempt};
    letter->report.points.push_back({.metric = "loss",
                                     .value = value,
                                     .implicit_step = true,
                                     .time = absl::FromUnixSeconds(second)});
    ASSERT_TRUE(reconciler_.InboxOf(kKey)->Put(letter).ok());
    Pass();
    ASSERT_TRUE(letter->answer.ok()) << letter->answer.status();
  }
  // "1@2=0.5": attempt, step, value.
  std::vector<std::string> Rows() {
    std::vector<std::string> rows;
    const auto counted = store_->ListObservations({.trial = {kKey, 1}});
    for (const db::ObservationRow& row : *counted) {
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

}  // namespace
}  // namespace shirabe::experiment
