// Machines that are given out and taken away, with real processes.
#include <csignal>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "tests/trial/executor_harness.h"
#include "tests/trial/pools.h"
#include "trial/local/simulated_preemption.h"
#include "trial/local/supervisor_records.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using State = AttemptStatus::State;

class ProcessNodesTest : public testing::Test {
 protected:
  void Open(const v1::NodePools& pools, std::vector<std::string> devices = {}) {
    ASSERT_NE(harness_.Open("process", std::move(devices), pools), nullptr);
  }
  std::string File(const std::string& name) { return harness_.home() + "/" + name; }
  // Runs the script until it has written file "ready<trial>".
  void StartAndAwait(const AttemptKey& key, const std::string& script) {
    const std::string ready = File(absl::StrCat("ready", AttemptName(key)));
    const Status status = harness_.Start(
        key, {.argv = Shell(script + "; echo up > " + ready + "; while :; do sleep 0.05; done")});
    ASSERT_TRUE(status.ok()) << status;
    harness_.AwaitFile(ready);
  }
  Status StartSleeper(const AttemptKey& key, int gpus = 0) {
    return harness_.Start(key, {.argv = {"sleep", "1000"}, .gpus = gpus});
  }
  AttemptStatus Seen(const AttemptKey& key) { return harness_.See(key).value_or(AttemptStatus()); }
  void Finish(const AttemptKey& key) {
    EXPECT_TRUE(harness_.executor().Stop(key, v1::USER, absl::ZeroDuration()).ok());
    harness_.AwaitEnd(key);
    harness_.executor().Forget(key);
  }
  // As if an earlier process had published a reclaim and died right after it.
  void Publish(const AttemptKey& key, absl::Duration left, const std::string& token = "token") {
    const absl::Time gone = RealClock()->Now() + left;
    const ReclaimRecord record = {AttemptId(key, token), v1::PREEMPTED_SPOT, gone, gone};
    ASSERT_TRUE(WriteReclaimRecord(harness_.executor().Paths(key).dir, record).ok());
  }

  ExecutorHarness harness_;
};

TEST_F(ProcessNodesTest, AnAttemptIsPlacedAtAPrice) {
  v1::NodePools pools = SpotPool(2);
  AddPool(pools, "big", v1::ON_DEMAND, 1).set_price_per_hour(3.5);
  Open(pools);
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  ASSERT_TRUE(StartSleeper(Attempt(2)).ok());
  const v1::Placement first = Seen(Attempt(1)).placement;
  EXPECT_EQ(first.node(), "spot-0");
  EXPECT_EQ(first.pool(), "spot");
  EXPECT_EQ(first.capacity(), "spot");
  EXPECT_EQ(first.price_per_hour(), 0.9);
  EXPECT_EQ(first.on_demand_price_per_hour(), 3.5);
  EXPECT_EQ(Seen(Attempt(2)).placement.node(), "spot-1");
  Finish(Attempt(1));
  Finish(Attempt(2));
}

TEST_F(ProcessNodesTest, WithoutPoolsItRunsOnThisMachineForNothing) {
  Open({});
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  const v1::Placement placement = Seen(Attempt(1)).placement;
  EXPECT_EQ(placement.node(), ThisProcess().host);
  EXPECT_EQ(placement.pool(), "");
  EXPECT_EQ(placement.capacity(), "on-demand");
  EXPECT_EQ(placement.price_per_hour(), 0);
  Finish(Attempt(1));
}

TEST_F(ProcessNodesTest, SlotsBoundWhatRunsAndAreFreeOnceForgotten) {
  Open(SpotPool(2));
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  ASSERT_TRUE(StartSleeper(Attempt(2)).ok());
  const Status third = StartSleeper(Attempt(3));
  EXPECT_EQ(third.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(third), HasSubstr("no free slot in pool spot (2 of 2 busy)"));
  const PlacementQuote quote = harness_.executor().QuotePlacement(kExperiment, {}, {});
  EXPECT_EQ(quote.waiting, "no free slot in pool spot (2 of 2 busy)");
  EXPECT_EQ(quote.price_per_hour, 0.9);
  const int changes = harness_.Changes(kExperiment);
  Finish(Attempt(1));
  EXPECT_GT(harness_.Changes(kExperiment), changes);  // whoever was refused may try again
  ASSERT_TRUE(StartSleeper(Attempt(3)).ok());
  EXPECT_EQ(Seen(Attempt(3)).placement.node(), "spot-0");
  Finish(Attempt(2));
  Finish(Attempt(3));
}

TEST_F(ProcessNodesTest, SlotsAndDevicesGoTogether) {
  Open(SpotPool(2), {"0"});
  ASSERT_TRUE(StartSleeper(Attempt(1), /*gpus=*/1).ok());
  // A slot is free and no device is: the slot must not be lost.
  EXPECT_EQ(StartSleeper(Attempt(2), 1).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(StartSleeper(Attempt(3)).ok());
  Finish(Attempt(1));
  // And the other way round.
  ASSERT_TRUE(StartSleeper(Attempt(4)).ok());
  EXPECT_EQ(StartSleeper(Attempt(2), 1).code(), absl::StatusCode::kResourceExhausted);
  Finish(Attempt(3));
  ASSERT_TRUE(StartSleeper(Attempt(2), 1).ok());
  EXPECT_EQ(Seen(Attempt(2)).placement.devices(), "0");
  Finish(Attempt(2));
  Finish(Attempt(4));
}

TEST_F(ProcessNodesTest, NoPoolToUseIsAnErrorWithTheFix) {
  Open(SpotPool(1));
  AttemptRequest request = MakeRequest(Attempt(1), {.argv = {"true"}});
  request.placement_request.policy.set_spot(v1::SPOT_NEVER);
  const Status status = harness_.executor().Start(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("cannot progress: "));
  EXPECT_THAT(
      harness_.executor().QuotePlacement(kExperiment, {}, request.placement_request).waiting,
      HasSubstr("cannot progress"));
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());  // and nothing was taken
  Finish(Attempt(1));
}

TEST_F(ProcessNodesTest, WithoutNoticeItIsKilledUntold) {
  Open(SpotPool(1, {2}));
  StartAndAwait(Attempt(1), "trap 'echo told; exit 0' TERM");
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.platform, v1::PREEMPTED_SPOT);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(harness_.Log(Attempt(1)), "");
  EXPECT_FALSE(std::filesystem::exists(harness_.executor().Paths(Attempt(1)).control_file));
  ASSERT_TRUE(end.ran.has_value());
  EXPECT_GT(*end.ran, absl::Milliseconds(200));
  EXPECT_LT(*end.ran, kPatience);
}

TEST_F(ProcessNodesTest, AnOnDemandMachineIsLostAsANode) {
  v1::NodePools pools = SpotPool(1, {2});
  pools.mutable_pools(0)->set_capacity(v1::ON_DEMAND);
  Open(pools);
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).platform, v1::PREEMPTED_NODE);
}

TEST_F(ProcessNodesTest, WithNoticeTheProgramIsToldAndMaySave) {
  Open(SpotPool(1, {2}, /*notice_seconds=*/40));
  const std::string control = harness_.executor().Paths(Attempt(1)).control_file;
  const absl::Time before = RealClock()->Now();
  StartAndAwait(Attempt(1), "trap 'cat " + control + "; exit 75' TERM");
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.platform, v1::PREEMPTED_SPOT);
  EXPECT_EQ(end.exit_code, 75);
  // Without what its shell says of a sleep that SIGTERM ended.
  const std::string printed = absl::StrReplaceAll(harness_.Log(Attempt(1)), {{"Terminated\n", ""}});
  const auto request = nlohmann::json::parse(printed, nullptr, false);
  ASSERT_TRUE(request.is_object()) << harness_.Log(Attempt(1));
  EXPECT_EQ(request["reason"], "preempt");
  EXPECT_NEAR(request["deadline"].get<double>(), absl::ToUnixSeconds(before) + 40, 10);
}

TEST_F(ProcessNodesTest, WhoIgnoresTheNoticeIsKilledWithAllItsProcesses) {
  Open(SpotPool(1, {2}, /*notice_seconds=*/0.4));
  StartAndAwait(Attempt(1), "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$$$ > " +
                                File("escaped") + "; while :; do sleep 1; done' & true");
  int escaped = 0;
  ASSERT_TRUE(absl::SimpleAtoi(harness_.AwaitFile(File("escaped")), &escaped));
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.platform, v1::PREEMPTED_SPOT);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_GE(*end.ran, absl::Milliseconds(900));
  EXPECT_FALSE(FindProcess(escaped).has_value());
}

TEST_F(ProcessNodesTest, AProgramThatHadEndedByItselfWasNotPreempted) {
  Open(SpotPool(1));
  ASSERT_TRUE(harness_.Start(Attempt(1), {.argv = Shell("exit 0")}).ok());
  harness_.AwaitEnd(Attempt(1));
  Publish(Attempt(1), absl::ZeroDuration());  // the reclaim came a moment too late
  Open(SpotPool(1));
  harness_.executor().Adopt({Record(Attempt(1))});
  EXPECT_EQ(Seen(Attempt(1)).platform, v1::CAUSE_NONE);
  EXPECT_EQ(Seen(Attempt(1)).exit_code, 0);
  EXPECT_TRUE(Seen(Attempt(1)).ran.has_value());
}

TEST_F(ProcessNodesTest, TheLongestRunningIsTaken) {
  Open(SpotPool(3, {3}));
  ASSERT_TRUE(StartSleeper(Attempt(2)).ok());
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(2)).platform, v1::PREEMPTED_SPOT);
  EXPECT_EQ(Seen(Attempt(1)).state, State::kRunning);
  EXPECT_EQ(Seen(Attempt(1)).platform, v1::CAUSE_NONE);
  Finish(Attempt(1));
}

TEST_F(ProcessNodesTest, AReclaimedSlotIsAwayForAWhile) {
  v1::NodePools pools = SpotPool(1, {2});
  // Long enough for a busy machine to look meanwhile.
  pools.mutable_pools(0)->mutable_reclaim()->set_returns_after_seconds(6.0);
  Open(pools);
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  harness_.AwaitEnd(Attempt(1));
  harness_.executor().Forget(Attempt(1));
  const Status early = StartSleeper(Attempt(1, 2));
  EXPECT_EQ(early.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(early), testing::ContainsRegex("\\(0 of 1 busy, 1 returns in [1-6] s\\)"));
  int changes = harness_.Changes(kExperiment);
  // Nobody looks: the executor says when it is worth trying, which is not only once the slot is
  // back: what was forgotten may be told late.
  EXPECT_TRUE(harness_.Await([&] {
    if (harness_.Changes(kExperiment) == changes) return false;
    changes = harness_.Changes(kExperiment);
    return StartSleeper(Attempt(1, 2)).ok();
  }));
  Finish(Attempt(1, 2));
}

TEST_F(ProcessNodesTest, PlaceAndSlotOfAnAdoptedAttemptAreKnown) {
  Open(SpotPool(2));
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  ASSERT_TRUE(StartSleeper(Attempt(2)).ok());
  Finish(Attempt(1));
  Open(SpotPool(2));
  harness_.executor().Adopt({Record(Attempt(2))});
  const v1::Placement placement = Seen(Attempt(2)).placement;
  EXPECT_EQ(placement.node(), "spot-1");
  EXPECT_EQ(placement.pool(), "spot");
  EXPECT_EQ(placement.price_per_hour(), 0.9);
  ASSERT_TRUE(StartSleeper(Attempt(3)).ok());
  EXPECT_EQ(Seen(Attempt(3)).placement.node(), "spot-0");
  EXPECT_EQ(StartSleeper(Attempt(4)).code(), absl::StatusCode::kResourceExhausted);
  // A nodes file without that pool changes nothing of what was.
  Open({});
  harness_.executor().Adopt({Record(Attempt(2)), Record(Attempt(3))});
  EXPECT_EQ(Seen(Attempt(2)).placement.node(), "spot-1");
  Finish(Attempt(2));
  Finish(Attempt(3));
}

TEST_F(ProcessNodesTest, ANoticeThatRunsIsKeptWhenWeAreGone) {
  Open(SpotPool(1, {2}, /*notice_seconds=*/0.5));
  StartAndAwait(Attempt(1), "trap 'echo told' TERM");
  ASSERT_TRUE(
      harness_.Await([&] { return harness_.Log(Attempt(1)).find("told") != std::string::npos; }));
  const auto pid = static_cast<pid_t>(Seen(Attempt(1)).placement.pid());
  harness_.Close();
  EXPECT_TRUE(harness_.AwaitGone(pid));
  Open(SpotPool(1));
  harness_.executor().Adopt({Record(Attempt(1))});
  EXPECT_EQ(Seen(Attempt(1)).platform, v1::PREEMPTED_SPOT);
  EXPECT_EQ(Seen(Attempt(1)).signal, SIGKILL);
}

TEST_F(ProcessNodesTest, AnAdoptedAttemptIsKilledAtTheDeadlineThatWasPublished) {
  Open(SpotPool(2));
  StartAndAwait(Attempt(1), "trap 'echo told' TERM");
  StartAndAwait(Attempt(2), "trap 'echo told' TERM");
  Publish(Attempt(1), absl::Seconds(3));
  Publish(Attempt(2), -absl::Seconds(5));  // long over
  Open(SpotPool(2));
  harness_.executor().Adopt({Record(Attempt(1)), Record(Attempt(2))});
  EXPECT_EQ(Seen(Attempt(1)).platform, v1::PREEMPTED_SPOT);
  for (const int trial : {1, 2}) {
    const AttemptStatus end = harness_.AwaitEnd(Attempt(trial));
    EXPECT_EQ(end.platform, v1::PREEMPTED_SPOT);
    EXPECT_EQ(end.signal, SIGKILL);
  }
  EXPECT_THAT(harness_.Log(Attempt(1)), HasSubstr("told"));
  EXPECT_EQ(harness_.Log(Attempt(2)), "");
}

TEST_F(ProcessNodesTest, ARecordOfAnotherAttemptIsNoReclaim) {
  Open(SpotPool(1));
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  Publish(Attempt(1), absl::ZeroDuration(), "another token");
  Open(SpotPool(1));
  harness_.executor().Adopt({Record(Attempt(1))});
  EXPECT_EQ(Seen(Attempt(1)).platform, v1::CAUSE_NONE);
  EXPECT_EQ(Seen(Attempt(1)).state, State::kRunning);
  Finish(Attempt(1));
}

TEST_F(ProcessNodesTest, ARestartPlaysNoTimeTwice) {
  const v1::NodePools pools = SpotPool(1, {2, 6});
  Open(pools);
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  harness_.AwaitEnd(Attempt(1));
  Open(pools);
  // The second comes when it is due, counted from the first start, and the first does not again.
  ASSERT_TRUE(StartSleeper(Attempt(1, 2)).ok());
  harness_.AwaitEnd(Attempt(1, 2));
  Open(pools);
  ASSERT_TRUE(StartSleeper(Attempt(1, 3)).ok());
  const absl::Duration begin = RealClock()->Monotonic();
  EXPECT_TRUE(
      harness_.Await([&] { return RealClock()->Monotonic() - begin > absl::Milliseconds(900); }));
  EXPECT_EQ(Seen(Attempt(1, 3)).state, State::kRunning);
  Finish(Attempt(1, 3));
}

TEST_F(ProcessNodesTest, WhatWasDueWhileWeWereGoneTakesOnlyWhatRanThen) {
  const v1::NodePools pools = SpotPool(2, {2});
  Open(pools);
  ASSERT_TRUE(StartSleeper(Attempt(1)).ok());
  harness_.Close();
  const absl::Duration begin = RealClock()->Monotonic();
  EXPECT_TRUE(
      harness_.Await([&] { return RealClock()->Monotonic() - begin > absl::Milliseconds(2100); }));
  Open(pools);
  harness_.executor().Adopt({Record(Attempt(1))});
  ASSERT_TRUE(StartSleeper(Attempt(2)).ok());
  EXPECT_EQ(harness_.AwaitEnd(Attempt(1)).platform, v1::PREEMPTED_SPOT);
  EXPECT_EQ(Seen(Attempt(2)).platform, v1::CAUSE_NONE);
  Finish(Attempt(2));
}

// A reclaim every 0.2 s, for ever: each attempt is lost, none is reported otherwise, nothing leaks.
TEST_F(ProcessNodesTest, AStormTakesEveryAttemptAndLeavesNothing) {
  v1::NodePools pools = SpotPool(1);
  for (int i = 1; i <= 1000; ++i) pools.mutable_pools(0)->mutable_reclaim()->add_times(0.2 * i);
  Open(pools);
  for (int number = 1; number <= 15; ++number) {
    const AttemptKey key = Attempt(1, number);
    // Longer than any gap, however busy this machine is.
    ASSERT_TRUE(harness_.Start(key, {.argv = {"sleep", "1000"}}).ok());
    const AttemptStatus end = harness_.AwaitEnd(key);
    EXPECT_EQ(end.platform, v1::PREEMPTED_SPOT);
    EXPECT_EQ(end.signal, SIGKILL);
    harness_.executor().Forget(key);
  }
  EXPECT_EQ(harness_.executor().QuotePlacement(kExperiment, {}, {}).waiting, "");
}

TEST_F(ProcessNodesTest, PerNodeHourTakesMachinesAtRandom) {
  v1::NodePools pools = SpotPool(4);
  pools.mutable_pools(0)->mutable_reclaim()->set_per_node_hour(20'000);  // every 0.18 s
  Open(pools);
  for (int trial = 1; trial <= 4; ++trial) ASSERT_TRUE(StartSleeper(Attempt(trial)).ok());
  for (int trial = 1; trial <= 4; ++trial) {
    EXPECT_EQ(harness_.AwaitEnd(Attempt(trial)).platform, v1::PREEMPTED_SPOT);
  }
}

TEST_F(ProcessNodesTest, AStopOfOursStaysOursAndMayBeCutShort) {
  Open(SpotPool(1, {2}));
  StartAndAwait(Attempt(1), "trap 'echo told' TERM");
  ASSERT_TRUE(harness_.executor().Stop(Attempt(1), v1::EARLY_STOPPED, absl::Seconds(50)).ok());
  const AttemptStatus end = harness_.AwaitEnd(Attempt(1));
  EXPECT_EQ(end.platform, v1::PREEMPTED_SPOT);  // both are true: the caller knows what it asked
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_LT(*end.ran, absl::Seconds(40));
}

}  // namespace
}  // namespace shirabe::trial
