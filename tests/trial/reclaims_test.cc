#include "trial/local/simulated_preemption.h"

#include <algorithm>
#include <cstdlib>

#include "base/file_io.h"
#include "base/open_beneath.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/trial/pools.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ExperimentKey kReclaimed{"default", "exp"};
const TraceState kFresh{absl::UnixEpoch(), absl::ZeroDuration()};

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

Reclaims::RunningAttempt Running(int64_t trial, const std::string& node, double since,
                                 const ExperimentKey& experiment = kReclaimed) {
  Reclaims::RunningAttempt runner = {{{experiment, trial}, 1}, {}, At(since)};
  runner.placement.set_node(node);
  runner.placement.set_pool("spot");
  runner.placement.set_capacity("spot");
  return runner;
}

std::vector<std::string> Hit(const std::vector<Reclaims::Preemption>& preemptions) {
  std::vector<std::string> nodes;
  for (const Reclaims::Preemption& preemption : preemptions) nodes.push_back(preemption.node);
  return nodes;
}

std::vector<double> FirstSeconds(const v1::NodePools& pools, int count) {
  ReclaimTrace trace(pools);
  std::vector<double> seconds;
  while (static_cast<int>(seconds.size()) < count && trace.Next() != nullptr) {
    seconds.push_back(absl::ToDoubleSeconds(trace.Next()->at));
    trace.Pop();
  }
  return seconds;
}

TEST(ReclaimTrace, ListsTimesInOrderAndEnds) {
  EXPECT_THAT(FirstSeconds(SpotPool(2, {5, 0.5, 3}), 10), ElementsAre(0.5, 3, 5));
  EXPECT_THAT(FirstSeconds(SpotPool(2), 10), IsEmpty());
}

TEST(ReclaimTrace, IsTheSameForTheSameSeedAndPoissonInTheMean) {
  v1::NodePools pools = SpotPool(4);
  pools.mutable_pools(0)->mutable_reclaim()->set_per_node_hour(12);
  const std::vector<double> first = FirstSeconds(pools, 4000);
  EXPECT_EQ(first, FirstSeconds(pools, 4000));
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  // 48 an hour from the four slots: 4000 take 83.3 hours, give or take 1.6 % each way.
  EXPECT_NEAR(first.back() / 3600, 83.3, 4);
  pools.set_seed(1);
  EXPECT_NE(first, FirstSeconds(pools, 4000));
}

// Another slot, or another pool, changes nothing for those that are there.
TEST(ReclaimTrace, ASlotHasAStreamOfItsOwn) {
  const auto of_slot = [](int slots) {
    v1::NodePools pools = SpotPool(slots);
    pools.mutable_pools(0)->mutable_reclaim()->set_per_node_hour(12);
    ReclaimTrace trace(pools);
    while (trace.Next()->node != "spot-0") trace.Pop();
    return trace.Next()->at;
  };
  EXPECT_EQ(of_slot(1), of_slot(7));
}

TEST(Reclaims, ATimeTakesTheLongestRunning) {
  Reclaims reclaims(SpotPool(3, {10, 20}));
  reclaims.Begin(kReclaimed, kFresh, At(100));
  EXPECT_EQ(reclaims.Next(), At(110));
  const std::vector<Reclaims::RunningAttempt> running = {
      Running(1, "spot-0", 103), Running(2, "spot-1", 101), Running(3, "spot-2", 102)};
  EXPECT_THAT(reclaims.Play(running, At(109.9)), IsEmpty());
  const auto preemptions = reclaims.Play(running, At(110));
  ASSERT_THAT(Hit(preemptions), ElementsAre("spot-1"));
  EXPECT_EQ(preemptions[0].cause, v1::PREEMPTED_SPOT);
  EXPECT_EQ(preemptions[0].state.until, At(10));
  EXPECT_EQ(reclaims.Next(), At(120));
  EXPECT_THAT(reclaims.Play(running, At(110.5)), IsEmpty());
}

TEST(Reclaims, SeveralAtOnceTakeSeveral) {
  Reclaims reclaims(SpotPool(3, {10, 10, 10, 10}));
  reclaims.Begin(kReclaimed, kFresh, At(0));
  EXPECT_THAT(Hit(reclaims.Play({Running(1, "spot-0", 1), Running(2, "spot-1", 2)}, At(11))),
              ElementsAre("spot-0", "spot-1"));
  EXPECT_EQ(reclaims.Next(), std::nullopt);
}

TEST(Reclaims, AnIdleOneJustPasses) {
  Reclaims reclaims(SpotPool(1, {10}));
  reclaims.Begin(kReclaimed, kFresh, At(0));
  EXPECT_THAT(reclaims.Play({}, At(10)), IsEmpty());
  EXPECT_THAT(reclaims.Play({Running(1, "spot-0", 11)}, At(12)), IsEmpty());
}

// Whoever plays late takes none that has started since.
TEST(Reclaims, OneThatIsPlayedLateTakesWhatRanThen) {
  Reclaims reclaims(SpotPool(2, {10}));
  reclaims.Begin(kReclaimed, kFresh, At(0));
  EXPECT_THAT(Hit(reclaims.Play({Running(1, "spot-0", 11), Running(2, "spot-1", 9)}, At(50))),
              ElementsAre("spot-1"));
}

TEST(Reclaims, WhatWasPlayedDoesNotComeAgain) {
  Reclaims reclaims(SpotPool(1, {10, 20}));
  reclaims.Begin(kReclaimed, {absl::UnixEpoch(), At(10)}, At(0));
  EXPECT_EQ(reclaims.Next(), At(20));
}

TEST(Reclaims, ExperimentsHaveTracesOfTheirOwn) {
  const ExperimentKey other{"default", "other"};
  Reclaims reclaims(SpotPool(2, {10}));
  reclaims.Begin(kReclaimed, kFresh, At(0));
  reclaims.Begin(other, kFresh, At(5));
  const std::vector<Reclaims::RunningAttempt> running = {Running(1, "spot-0", 1, other),
                                                         Running(1, "spot-1", 2)};
  EXPECT_THAT(Hit(reclaims.Play(running, At(10))), ElementsAre("spot-1"));
  reclaims.Forget(other);
  EXPECT_THAT(reclaims.Play(running, At(20)), IsEmpty());
  EXPECT_EQ(reclaims.Next(), std::nullopt);
}

TEST(Reclaims, RandomOnesTakeTheirOwnSlotOnly) {
  v1::NodePools pools = SpotPool(2);
  pools.mutable_pools(0)->mutable_reclaim()->set_per_node_hour(60);
  pools.mutable_pools(0)->mutable_reclaim()->set_notice_seconds(15);
  Reclaims reclaims(pools);
  EXPECT_TRUE(reclaims.any());
  reclaims.Begin(kReclaimed, kFresh, At(0));
  const auto preemptions = reclaims.Play({Running(1, "spot-1", 0)}, At(36'000));
  ASSERT_THAT(Hit(preemptions), ElementsAre("spot-1"));
  EXPECT_EQ(preemptions[0].notice, At(15));
}

class ReclaimFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "shirabe-reclaims-XXXXXX";
    ASSERT_NE(mkdtemp(dir_.data()), nullptr);
  }
  void TearDown() override { EXPECT_TRUE(RemoveAll(dir_).ok()); }
  std::string dir_;
};

TEST_F(ReclaimFilesTest, AreReadAsTheyWereWritten) {
  const std::string path = dir_ + "/reclaims.json";
  EXPECT_TRUE(absl::IsNotFound(ReadTraceState(path).status()));
  const absl::Time time = absl::FromUnixNanos(1'700'000'000'123'456'789);
  ASSERT_TRUE(WriteTraceState(path, {time, absl::Milliseconds(1500)}).ok());
  EXPECT_EQ(ReadTraceState(path)->origin, time);
  EXPECT_EQ(ReadTraceState(path)->until, absl::Milliseconds(1500));

  EXPECT_TRUE(absl::IsNotFound(ReadReclaimRecord(dir_).status()));
  ASSERT_TRUE(WriteReclaimRecord(dir_, {"id", v1::PREEMPTED_NODE, time, time + At(5)}).ok());
  const auto record = ReadReclaimRecord(dir_);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->id, "id");
  EXPECT_EQ(record->cause, v1::PREEMPTED_NODE);
  EXPECT_EQ(record->deadline, time);
  EXPECT_EQ(record->back, time + At(5));
}

TEST_F(ReclaimFilesTest, OthersAreRefused) {
  for (const char* text : {"", "{", "[]", R"({"first_start_ns": "x", "played_until_ns": 1})",
                           R"({"first_start_ns": 1.5, "played_until_ns": 1})"}) {
    ASSERT_TRUE(WriteFileAtomic(dir_ + "/reclaim", text).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadTraceState(dir_ + "/reclaim").status())) << text;
    EXPECT_TRUE(absl::IsDataLoss(ReadReclaimRecord(dir_).status())) << text;
  }
}

}  // namespace
}  // namespace shirabe::trial
