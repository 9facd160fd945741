#include "experiment/state/budget.h"

#include <gtest/gtest.h>

#include "base/timestamp.h"

namespace shirabe::experiment {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'700'000'000);

v1::Attempt Attempt(v1::Cause cause, double seconds, double price) {
  v1::Attempt attempt;
  attempt.set_cause(cause);
  *attempt.mutable_start_time() = ToProto(kStart);
  *attempt.mutable_end_time() = ToProto(kStart + absl::Seconds(seconds));
  v1::Placement* placement = attempt.add_placements();
  *placement->mutable_start_time() = attempt.start_time();
  *placement->mutable_end_time() = attempt.end_time();
  placement->set_price_per_hour(price);
  placement->set_on_demand_price_per_hour(3 * price);
  return attempt;
}

TEST(CloseAccounts, CostsSecondsTimesPrice) {
  v1::Attempt attempt = Attempt(v1::COMPLETED, 1800, 2.5);
  CloseAccounts(attempt, v1::Trial(), std::nullopt, std::nullopt);
  EXPECT_DOUBLE_EQ(attempt.seconds(), 1800);
  EXPECT_DOUBLE_EQ(attempt.cost(), 1.25);
  EXPECT_EQ(attempt.wasted_seconds(), 0) << "what completes is not wasted";
}

// F18: an attempt does not become dearer because somebody set the clock.
TEST(CloseAccounts, TheMonotonicClockComesFirst) {
  v1::Attempt attempt = Attempt(v1::COMPLETED, 7200, 1);
  CloseAccounts(attempt, v1::Trial(), absl::Seconds(3600), std::nullopt);
  EXPECT_DOUBLE_EQ(attempt.cost(), 1);
  *attempt.mutable_end_time() = ToProto(kStart - absl::Hours(1));
  CloseAccounts(attempt, v1::Trial(), std::nullopt, std::nullopt);
  EXPECT_EQ(attempt.cost(), 0) << "never negative";
}

TEST(CloseAccounts, OnlyWhatFollowsTheLastSaveOfALostAttemptIsWasted) {
  v1::Attempt attempt = Attempt(v1::PREEMPTED_SPOT, 100, 36);
  CloseAccounts(attempt, v1::Trial(), std::nullopt, kStart + absl::Seconds(70));
  EXPECT_DOUBLE_EQ(attempt.wasted_seconds(), 30);
  CloseAccounts(attempt, v1::Trial(), std::nullopt, std::nullopt);
  EXPECT_DOUBLE_EQ(attempt.wasted_seconds(), 100);
  CloseAccounts(attempt, v1::Trial(), std::nullopt, kStart + absl::Hours(2));
  EXPECT_EQ(attempt.wasted_seconds(), 0) << "a save by a clock that was set";
}

TEST(CloseAccounts, StepsAreGainedOnceHoweverOftenTheyAreDone) {
  v1::Trial trial;
  v1::ShirabeStatus status;
  const int64_t resumed[] = {0, 0, 6, 10}, last[] = {8, 5, 12, 10};
  const int64_t gained[] = {8, 0, 4, 0}, redone[] = {0, 5, 2, 0};
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    v1::Attempt attempt = Attempt(v1::PREEMPTED_SPOT, 10, 1);
    attempt.set_resumed_from_step(resumed[i]);
    attempt.set_last_step(last[i]);
    CloseAccounts(attempt, trial, std::nullopt, std::nullopt);
    EXPECT_EQ(attempt.steps_gained(), gained[i]) << i;
    EXPECT_EQ(attempt.steps_redone(), redone[i]) << i;
    Charge(attempt, trial, status);
    sum += attempt.steps_gained();
  }
  EXPECT_EQ(trial.reached_step(), 12);
  EXPECT_EQ(sum, 12);
}

// I7: the sums are those of the attempts.
TEST(Charge, AddsUp) {
  v1::Trial trial;
  v1::ShirabeStatus status;
  double cost = 0;
  for (int i = 1; i <= 5; ++i) {
    v1::Attempt attempt = Attempt(i % 2 == 0 ? v1::PREEMPTED_NODE : v1::APP_ERROR, 60.0 * i, 7.2);
    CloseAccounts(attempt, trial, std::nullopt, kStart + absl::Seconds(30));
    Charge(attempt, trial, status);
    cost += attempt.cost();
  }
  EXPECT_DOUBLE_EQ(trial.cost(), cost);
  EXPECT_DOUBLE_EQ(status.cost(), 900 * 7.2 / 3600);
  EXPECT_DOUBLE_EQ(status.on_demand_cost(), 3 * status.cost());
  EXPECT_DOUBLE_EQ(status.wasted_seconds(), 90 + 210);
  EXPECT_DOUBLE_EQ(status.wasted_cost(), 300 * 7.2 / 3600);
  EXPECT_EQ(status.preemptions(), 2);
}

TEST(BudgetState, StartsOnlyWhatItCanStop) {
  BudgetState money{.cap = 10.0, .spent = 5, .reserved = 2, .next = 1};
  EXPECT_EQ(money.Affordable(9), 2) << "a third would reach the cap";
  EXPECT_EQ(money.WhyReached(true, ""), std::nullopt);
  money.reserved = 5;
  EXPECT_EQ(money.WhyReached(true, ""),
            "5.00 of 10.00 USD are spent, and what runs may cost 5.00 until stopped (within "
            "spec.shirabe.attempts.gracePeriodSeconds), which is all of the rest, or more");
  EXPECT_EQ(money.Affordable(9), 0);
  money = {.cap = 10.0, .spent = 9.5, .next = 1};
  EXPECT_EQ(money.WhyReached(true, "EUR"), std::nullopt) << "something runs, and may";
  EXPECT_EQ(money.WhyReached(false, "EUR"),
            "9.50 of 10.00 EUR are spent, and another attempt may cost 1.00 until stopped (within "
            "spec.shirabe.attempts.gracePeriodSeconds), which is all of the rest, or more");
  money.next = 0;
  EXPECT_EQ(money.Affordable(9), 9) << "what costs nothing may start";
}

}  // namespace
}  // namespace shirabe::experiment
