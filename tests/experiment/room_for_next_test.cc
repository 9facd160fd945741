// When the next trial is asked for where there was no room for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/clock.h"
#include "experiment/reconciler.h"
#include "experiment/submit.h"
#include "tests/experiment/shown_executor.h"
#include "tests/experiment/specs.h"

namespace shirabe::experiment {
namespace {

using ::testing::SizeIs;

const ExperimentKey kKey{"default", "good"};

class RoomForNextTest : public testing::Test {
 protected:
  RoomForNextTest() {
    v1::Experiment experiment =
        ParseOnly(Replaced(kGood, "  parameters:", "  parallelTrialCount: 1\n  parameters:"));
    EXPECT_TRUE(Submit(*store_, clock_, experiment).ok());
    const auto lease = store_->AcquireLease({.experiment = kKey,
                                             .holder = "test",
                                             .now = clock_.Now(),
                                             .ttl = absl::Hours(9),
                                             .dead_epoch = std::nullopt});
    reconciler_.Own(kKey, lease->epoch());
  }

  // How long until the next pass is due.
  absl::Duration Pass() {
    const auto result = reconciler_.Reconcile(kKey);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->requeue_after : absl::InfiniteDuration();
  }
  std::string Waiting() { return store_->GetExperiment(kKey)->record.status().shirabe().waiting(); }
  size_t Trials() { return store_->ListTrials({.experiment = kKey})->size(); }

  ManualClock clock_;
  std::unique_ptr<db::Store> store_ = db::Open("memory:").value();
  ShownExecutor executor_;
  Proposer proposer_{0};
  Reconciler reconciler_{{.store = store_.get(),
                          .executor = &executor_,
                          .clock = &clock_,
                          .proposer = &proposer_,
                          .working_dir = "/tmp",
                          .enqueue = {},
                          .at_step = {}}};
};

TEST_F(RoomForNextTest, IsAskedForAtOnceWhenThisPassMakesIt) {
  Pass();
  ASSERT_EQ(Trials(), 1u);
  // The slot is taken by what has ended, until the end is written.
  trial::Sighting ended;
  ended.state = trial::Sighting::State::kExited;
  ended.exit_code = 0;
  executor_.sighting = ended;
  executor_.offer.waiting = "no free slot";
  EXPECT_EQ(Pass(), absl::ZeroDuration());
  EXPECT_THAT(executor_.forgotten, SizeIs(1));
  EXPECT_EQ(Waiting(), "");
}

TEST_F(RoomForNextTest, IsLookedForAgainWhereOthersHaveIt) {
  executor_.offer.waiting = "no free slot";
  EXPECT_GT(Pass(), absl::ZeroDuration());
  EXPECT_EQ(Waiting(), "no free slot");
  EXPECT_EQ(Trials(), 0u);
  executor_.offer.waiting.clear();
  reconciler_.Recheck(kKey);
  Pass();
  EXPECT_EQ(Trials(), 1u);
}

}  // namespace
}  // namespace shirabe::experiment
