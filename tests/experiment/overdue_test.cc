// When it is said that a checkpoint is late: only of what runs, and by how long that has run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "experiment/reconciler.h"
#include "experiment/submit.h"
#include "tests/experiment/shown_executor.h"
#include "tests/experiment/specs.h"

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ExperimentKey kKey{"default", "good"};

class OverdueTest : public testing::Test {
 protected:
  OverdueTest() {
    clock_.Advance(absl::Seconds(4564));  // the machine has been up for longer than the trial
    std::string spec = Replaced(kGood, "maxTrialCount: 10", "maxTrialCount: 1");
    v1::Experiment experiment = ParseOnly(Replaced(spec, "  parameters:",
                                                   "  parallelTrialCount: 1\n"
                                                   "  shirabe: {checkpoint: {intervalSeconds: "
                                                   "60}}\n  parameters:"));
    EXPECT_TRUE(Submit(*store_, clock_, experiment).ok());
    const auto lease = store_->AcquireLease({.experiment = kKey,
                                             .holder = "test",
                                             .now = clock_.Now(),
                                             .ttl = absl::Hours(9),
                                             .dead_epoch = std::nullopt});
    reconciler_.Own(kKey, lease->epoch());
    Pass();  // makes the trial
    Pass();
  }

  void Pass() {
    const auto result = reconciler_.Reconcile(kKey);
    EXPECT_TRUE(result.ok()) << result.status();
  }
  void PassAfter(absl::Duration time) {
    clock_.Advance(time);
    Pass();
  }
  std::vector<std::string> Warnings() {
    std::vector<std::string> said;
    const auto events = store_->ListEvents({.experiment = kKey});
    for (const v1::Event& event : *events) {
      if (event.reason() == "CheckpointOverdue") said.push_back(event.message());
    }
    return said;
  }

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

TEST_F(OverdueTest, WhatNeverRanIsNotLate) {
  trial::Sighting ended;
  ended.state = trial::Sighting::State::kExited;
  ended.platform = v1::NEVER_RAN;
  executor_.sighting = ended;
  PassAfter(absl::Seconds(10));
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(OverdueTest, WhatRunsIsLateByHowLongItRan) {
  trial::Sighting running;
  *running.placement.mutable_start_time() = ToProto(clock_.Now());
  executor_.sighting = running;
  PassAfter(absl::Seconds(10));
  EXPECT_THAT(Warnings(), IsEmpty());
  PassAfter(absl::Seconds(61));
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("none for 61 s")));
}

}  // namespace
}  // namespace shirabe::experiment
