// When it is said that a checkpoint is late: only of what runs, and by how long that has run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OverdueTest : public ReconcilerTest {
 protected:
  OverdueTest() {
    clock_.Advance(absl::Seconds(4564));  // the machine has been up for longer than the trial
    Create("  parallelTrialCount: 1\n  shirabe: {checkpoint: {intervalSeconds: 60}}\n");
    Pass();  // makes the trial
    Pass();
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
};

TEST_F(OverdueTest, WhatNeverRanIsNotLate) {
  trial::AttemptStatus ended;
  ended.state = trial::AttemptStatus::State::kExited;
  ended.platform = v1::NEVER_RAN;
  executor_.observed = ended;
  PassAfter(absl::Seconds(10));
  EXPECT_THAT(Warnings(), IsEmpty());
}

TEST_F(OverdueTest, WhatRunsIsLateByHowLongItRan) {
  trial::AttemptStatus running;
  *running.placement.mutable_start_time() = ToProto(clock_.Now());
  executor_.observed = running;
  PassAfter(absl::Seconds(10));
  EXPECT_THAT(Warnings(), IsEmpty());
  PassAfter(absl::Seconds(61));
  EXPECT_THAT(Warnings(), ElementsAre(HasSubstr("none for 61 s")));
}

}  // namespace
}  // namespace shirabe::experiment
