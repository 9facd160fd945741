// When the files of a running attempt are read: again and again where its program writes them, and
// once after each change where the executor brings them and says so.
#include <filesystem>
#include <fstream>

#include "base/timestamp.h"
#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

class CollectTest : public ReconcilerTest {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(Paths().dir);
    Write("");
    Create("  parallelTrialCount: 1\n");
    Pass();  // makes the trial and starts it
    executor_.observed.emplace();
    *executor_.observed->placement.mutable_start_time() = ToProto(clock_.Now());
  }
  void TearDown() override { std::filesystem::remove_all(Paths().dir); }

  trial::AttemptPaths Paths() { return executor_.Paths({}); }
  void Write(const std::string& more) { std::ofstream(Paths().log, std::ios::app) << more; }
  size_t Known() { return store_->ListObservations({.trial = {kKey, 1}})->size(); }
  void ShowVersion(int64_t version) { executor_.observed->files_version = version; }
};

TEST_F(CollectTest, WhatItsProgramWritesIsLookedForAgainAndAgain) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_LE(Pass(), absl::Seconds(1));
    clock_.Advance(absl::Seconds(1));
  }
  Write("loss=1\n");
  Pass();
  EXPECT_EQ(Known(), 1u);
}

TEST_F(CollectTest, WhatIsBroughtIsReadOnceItIsSaidToBeThere) {
  ShowVersion(1);
  Write("loss=1\n");
  EXPECT_GT(Pass(), absl::Hours(1)) << "nothing is due before there is more";
  EXPECT_EQ(Known(), 1u);
  clock_.Advance(absl::Minutes(1));
  Write("loss=2\n");
  Pass();
  EXPECT_EQ(Known(), 1u) << "it was not said";
  ShowVersion(2);
  EXPECT_GT(Pass(), absl::Hours(1));
  EXPECT_EQ(Known(), 2u);
}

TEST_F(CollectTest, WhatIsBroughtEveryMomentIsReadFourTimesASecond) {
  ShowVersion(1);
  Write("loss=1\n");
  Pass();
  Write("loss=2\n");
  ShowVersion(2);
  EXPECT_EQ(Pass(), absl::Milliseconds(250));
  EXPECT_EQ(Known(), 1u);
  clock_.Advance(absl::Milliseconds(250));
  EXPECT_GT(Pass(), absl::Hours(1));
  EXPECT_EQ(Known(), 2u);
}

TEST_F(CollectTest, ANewOwnerReadsWhatIsThere) {
  ShowVersion(1);
  Pass();
  Write("loss=1\n");
  Pass();
  ASSERT_EQ(Known(), 0u);
  TakeOver();
  Pass();
  EXPECT_EQ(Known(), 1u);
}

TEST_F(CollectTest, WhatCannotBeReadIsTriedAgainThoughNothingWasBrought) {
  ShowVersion(1);
  std::filesystem::remove(Paths().log);
  std::filesystem::create_directory(Paths().log);
  EXPECT_LE(Pass(), absl::Seconds(1));
  std::filesystem::remove(Paths().log);
  Write("loss=1\n");
  clock_.Advance(absl::Seconds(1));
  EXPECT_GT(Pass(), absl::Hours(1));
  EXPECT_EQ(Known(), 1u);
}

}  // namespace
}  // namespace shirabe::experiment
