#include "base/text/number.h"
#include "view/spending.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/records.h"

namespace shirabe::view {
namespace {

using Lines = std::map<std::string, std::string>;

Lines LinesOf(const v1::Experiment& experiment) {
  Lines lines;
  for (const auto& [label, text] : SpendingLines(experiment)) lines[label] = text;
  return lines;
}

TEST(MoneyTest, AmountsHaveTheDigitsThatSaySomething) {
  EXPECT_EQ(AmountText(0), "0");
  EXPECT_EQ(AmountText(1234.567), "1234.57");
  EXPECT_EQ(AmountText(12.5), "12.50");
  EXPECT_EQ(AmountText(0.0417), "0.0417");
  EXPECT_EQ(AmountText(0.0000312), "3.12e-05");
  EXPECT_EQ(SecondsText(12.54), "12.5s");
  EXPECT_EQ(SecondsText(720), "12m");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(int64_t{3} << 30), "3.0 GiB");
}

TEST(MoneyTest, APoolThatIsTakenBackOftenIsToBeSavedOnOften) {
  std::vector<v1::Attempt> attempts;
  const auto add = [&](const std::string& pool, double seconds, v1::Cause cause) {
    v1::Attempt attempt = MakeClosedAttempt(1, static_cast<int32_t>(attempts.size()) + 1);
    attempt.set_cause(cause);
    attempt.set_seconds(seconds);
    attempt.mutable_placements(0)->set_pool(pool);
    attempts.push_back(std::move(attempt));
  };
  add("steady", 9000, v1::COMPLETED);
  EXPECT_EQ(PreemptionTable(attempts, 600, At(0)), "");
  EXPECT_EQ(PreemptionTable({}, 600, At(0)), "");
  add("spot", 3000, v1::PREEMPTED_SPOT);
  add("spot", 3000, v1::PREEMPTED_SCHEDULER);
  add("spot", 1200, v1::COMPLETED);
  add("spot", 0, v1::OOM);
  const std::string often = PreemptionTable(attempts, 600, At(0));
  EXPECT_NE(often.find("SAVE EVERY\nspot"), std::string::npos) << often;
  EXPECT_NE(often.find("60m"), std::string::npos) << often;
  EXPECT_NE(often.find("6m (intervalSeconds is 10m)"), std::string::npos) << often;
  EXPECT_EQ(often.find("steady"), std::string::npos) << often;
  EXPECT_EQ(PreemptionTable(attempts, 300, At(0)).find("intervalSeconds"), std::string::npos);
}

TEST(MoneyTest, AClosedAttemptIsWhatTheLedgerSays) {
  const Spending spent = SpendingOf(MakeClosedAttempt(7, 1), At(1000));
  EXPECT_EQ(spent.seconds, 39.5);
  EXPECT_EQ(spent.cost, 0.0395);
}

TEST(MoneyTest, AnOpenAttemptIsTheSumOfItsPlacements) {
  v1::Attempt attempt = MakeClosedAttempt(7, 1);
  attempt.set_state(v1::ATTEMPT_RUNNING);
  v1::Placement& second = *attempt.add_placements();
  second.set_price_per_hour(7.2);
  *second.mutable_start_time() = ToProto(At(60));
  const Spending spent = SpendingOf(attempt, At(160));
  EXPECT_NEAR(spent.seconds, 140, 1e-9);
  EXPECT_NEAR(spent.cost, 0.04 + 0.2, 1e-9);
  EXPECT_NEAR(spent.on_demand_cost, 0.12 + 0.2, 1e-9) << "on-demand itself where nothing is known";
  EXPECT_EQ(SpendingOf(attempt, At(0)).seconds, 40) << "a clock that went back takes nothing away";
}

TEST(MoneyTest, RunningAttemptsComeOnTop) {
  v1::Experiment experiment = MakeExperiment();
  experiment.mutable_status()->mutable_shirabe()->set_cost(1);
  v1::Attempt open = MakeClosedAttempt(7, 1);
  open.set_state(v1::ATTEMPT_RUNNING);
  open.mutable_placements(0)->clear_end_time();
  AddRunning({open, open}, At(120), experiment);
  EXPECT_NEAR(experiment.status().shirabe().cost(), 1.2, 1e-9);
  EXPECT_NEAR(experiment.status().shirabe().seconds(), 200, 1e-9);
}

TEST(MoneyTest, NothingIsSaidWhereNothingHasAPrice) {
  v1::Experiment experiment = MakeExperiment();
  experiment.mutable_status()->mutable_shirabe()->set_seconds(100);
  for (const auto& [label, text] : LinesOf(experiment)) EXPECT_EQ(text, "") << label;
}

TEST(MoneyTest, PreemptionsAreToldWithoutAPriceToo) {
  v1::Experiment experiment = MakeExperiment();
  v1::ShirabeStatus& status = *experiment.mutable_status()->mutable_shirabe();
  status.set_seconds(100);
  status.set_preemptions(1);
  status.set_wasted_seconds(2.5);
  const Lines lines = LinesOf(experiment);
  EXPECT_EQ(lines.at("Preempted"), "1 attempt");
  EXPECT_EQ(lines.at("Wasted"), "2.5s (2.5 %), after the last checkpoints of lost attempts");
  EXPECT_EQ(lines.at("Cost"), "");
}

TEST(MoneyTest, CostAgainstBudgetAndOnDemand) {
  v1::Experiment experiment = MakeExperiment();
  v1::Budget& budget = *experiment.mutable_spec()->mutable_shirabe()->mutable_budget();
  budget.set_max_cost(25);
  budget.set_currency("EUR");
  v1::ShirabeStatus& status = *experiment.mutable_status()->mutable_shirabe();
  status.set_seconds(3600);
  status.set_cost(12.5);
  status.set_on_demand_cost(50);
  status.set_preemptions(3);
  status.set_wasted_seconds(36);
  status.set_wasted_cost(0.125);
  status.set_refused_writes(2);
  const Lines lines = LinesOf(experiment);
  EXPECT_EQ(lines.at("Cost"), "12.50 EUR of a budget of 25.00 EUR (50.0 %), for 60m of machines");
  EXPECT_EQ(lines.at("On demand"), "50.00 EUR for the same time: 37.50 EUR (75.0 %) saved");
  EXPECT_EQ(lines.at("Wasted"),
            "36.0s (1.0 %), 0.1250 EUR, after the last checkpoints of lost attempts");
  EXPECT_EQ(lines.at("Preempted"), "3 attempts");
  EXPECT_EQ(lines.at("Refused"), "2 writes of attempts that were no longer current");
}

}  // namespace
}  // namespace shirabe::view
