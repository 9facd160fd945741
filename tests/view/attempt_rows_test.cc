#include "view/record_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/records.h"

namespace shirabe::view {
namespace {

using ::testing::ElementsAre;

TEST(LedgerTest, AClosedAttemptShowsItsEntry) {
  RowStyle style{.now = At(500)};
  EXPECT_THAT(AttemptRow(MakeClosedAttempt(7, 2), style),
              ElementsAre("digits-7-a2", "closed", "preempted-spot", "spot-1", "spot", "5200", "30",
                          "20", "39.5", "0.0395"));
  EXPECT_EQ(AttemptHeader(style).size(), AttemptRow(MakeClosedAttempt(7, 2), style).size());
  style.wide = true;
  const Cells wide = AttemptRow(MakeClosedAttempt(7, 2), style);
  EXPECT_THAT(Cells(wide.begin() + 10, wide.end()),
              ElementsAre("a100-spot", "signal 9", "3.60/h", "2023-11-14T22:13:40Z",
                          "2023-11-14T22:14:20Z", "", "0", ""));
  EXPECT_EQ(AttemptHeader(style).size(), wide.size());
}

TEST(LedgerTest, AnOpenAttemptShowsWhatItHasTakenSoFar) {
  v1::Attempt attempt = MakeClosedAttempt(7, 2);
  attempt.set_state(v1::ATTEMPT_RUNNING);
  attempt.set_cause(v1::CAUSE_NONE);
  attempt.mutable_placements(0)->clear_end_time();
  const Cells cells = AttemptRow(attempt, {.now = At(120)});
  EXPECT_EQ(cells[1], "running");
  EXPECT_EQ(cells[8], "100.0");
  EXPECT_EQ(cells[9], "0.1000");
  attempt.mutable_stop()->set_cause(v1::USER);
  EXPECT_EQ(AttemptRow(attempt, {.now = At(120)})[1], "stopping");
}

TEST(LedgerTest, WithoutAPriceThereIsNoCost) {
  v1::Attempt attempt = MakeClosedAttempt(7, 1);
  attempt.set_cost(0);
  attempt.mutable_placements(0)->clear_price_per_hour();
  const Cells cells = AttemptRow(attempt, {.now = At(500), .wide = true});
  EXPECT_EQ(cells[9], "");
  EXPECT_EQ(cells[12], "");
}

TEST(LedgerTest, SaysFromWhereItResumed) {
  v1::Attempt attempt = MakeClosedAttempt(7, 2);
  attempt.set_resumed_from_trial(3);
  EXPECT_EQ(AttemptRow(attempt, {.now = At(500)})[5], "5200 of digits-3") << "a parent's";
  attempt.set_resumed_from_step(0);
  attempt.set_resumed_from_attempt(0);
  attempt.set_resumed_from_trial(0);
  EXPECT_EQ(AttemptRow(attempt, {.now = At(500)})[5], "0") << "from the beginning, and says so";
  attempt.clear_start_time();
  EXPECT_EQ(AttemptRow(attempt, {.now = At(500)})[5], "") << "it has not started yet";
}

TEST(LedgerTest, Checkpoints) {
  RowStyle style{.now = At(110)};
  v1::Checkpoint checkpoint = MakeCheckpoint(7, 2, 5200);
  EXPECT_THAT(CheckpointRow(checkpoint, style),
              ElementsAre("5200", "a2", "1.5 KiB", "60s", "0123456789ab", ""));
  checkpoint.set_gone("pruned");
  checkpoint.set_objective(0.25);
  checkpoint.set_location("/checkpoints/5200");
  style.wide = true;
  EXPECT_THAT(CheckpointRow(checkpoint, style),
              ElementsAre("5200", "a2", "1.5 KiB", "60s", "0123456789ab", "pruned", "0.25", "1536",
                          "2023-11-14T22:14:10Z", "/checkpoints/5200"));
  EXPECT_EQ(CheckpointHeader(style).size(), CheckpointRow(checkpoint, style).size());
}

}  // namespace
}  // namespace shirabe::view
