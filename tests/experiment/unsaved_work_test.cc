// Which attempts may be given up once fewer may run: what they lose is known, and little.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class UnsavedWorkTest : public ReconcilerTest {
 protected:
  // Two trials that have run for a minute and have saved nothing.
  void RunTwo(const std::string& spec, int64_t pid = 0) {
    Create("  parallelTrialCount: 2\n" + spec);
    Pass();
    trial::AttemptStatus running;
    *running.placement.mutable_start_time() = ToProto(clock_.Now());
    running.placement.set_pid(pid);
    executor_.of_trials = {{1, running}, {2, running}};
    Pass();
    clock_.Advance(absl::Minutes(1));
  }
  // The first one, at this step and now, or as it was.
  void Save(int64_t step, v1::CopyState copy = v1::COPY_NONE) {
    auto& all = executor_.of_trials.at(1).checkpoints;
    for (v1::Checkpoint& one : all) {
      if (one.step() == step) return one.set_copy(copy);
    }
    v1::Checkpoint& save = all.emplace_back();
    save.set_namespace_(kKey.ns);
    save.set_experiment(kKey.name);
    save.set_trial(1);
    save.set_attempt(1);
    save.set_step(step);
    save.set_copy(copy);
    *save.mutable_time() = ToProto(clock_.Now());
  }
  void AllowOne() {
    v1::Intent intent;
    intent.set_verb(v1::Intent::SCALE);
    intent.set_parallel_trial_count(1);
    const Status sent = experiment::Send(*store_, clock_, kKey, intent);
    ASSERT_TRUE(sent.ok()) << sent;
    reconciler_.NotifyIntent(kKey);
    Look();
  }
  void Look() {
    Pass();
    Pass();
  }
  const std::vector<absl::Duration>& Stopped() const { return executor_.graces; }
};

TEST_F(UnsavedWorkTest, WhatIsSavedInThePodAloneIsNotSaved) {
  RunTwo("");
  Save(1);
  AllowOne();
  EXPECT_THAT(Stopped(), IsEmpty()) << "it would begin again from 0";
  Save(1, v1::COPY_UNDER_WAY);
  Look();
  EXPECT_THAT(Stopped(), IsEmpty());
  Save(1, v1::COPY_MADE);
  Look();
  EXPECT_THAT(Stopped(), SizeIs(1));
}

// By the age of the copy, not of what was saved since.
TEST_F(UnsavedWorkTest, AnOldCopyIsNoCopyOfWhatCameAfter) {
  RunTwo("");
  Save(1, v1::COPY_MADE);
  Pass();
  clock_.Advance(absl::Minutes(1));
  Save(2, v1::COPY_UNDER_WAY);
  AllowOne();
  EXPECT_THAT(Stopped(), IsEmpty());
  Save(2, v1::COPY_MADE);
  Look();
  EXPECT_THAT(Stopped(), SizeIs(1));
}

TEST_F(UnsavedWorkTest, WhatIsOnAVolumeIsSaved) {
  RunTwo("  shirabe: {checkpoint: {volume: {claim: team}}}\n");
  Save(1);
  AllowOne();
  EXPECT_THAT(Stopped(), SizeIs(1));
}

TEST_F(UnsavedWorkTest, WhatAProcessOfThisMachineSavesIsSaved) {
  RunTwo("", /*pid=*/4711);
  AllowOne();
  EXPECT_THAT(Stopped(), IsEmpty()) << "both have worked for a minute";
  Save(1);
  Look();
  EXPECT_THAT(Stopped(), SizeIs(1));
}

TEST_F(UnsavedWorkTest, WhatThisProcessHasStartedAndDoesNotRunYetHasDoneNothing) {
  Create("  parallelTrialCount: 2\n");
  Pass();
  executor_.of_trials = {{1, {}}, {2, {}}};
  Pass();
  AllowOne();
  EXPECT_THAT(Stopped(), SizeIs(1));
}

TEST_F(UnsavedWorkTest, OfWhatAnotherProcessHasStartedItMustBeSeen) {
  Create("  parallelTrialCount: 2\n");
  Pass();
  TakeOver();
  executor_.of_trials = {{1, {}}, {2, {}}};
  Pass();
  AllowOne();
  EXPECT_THAT(Stopped(), IsEmpty()) << "it may have run for hours";
  executor_.of_trials.at(2).waiting = "no node has room for it";
  Look();
  EXPECT_THAT(Stopped(), SizeIs(1));
}

}  // namespace
}  // namespace shirabe::experiment
