// A program that something other than a platform kills: again and again, it has failed.
#include <gtest/gtest.h>

#include <string>

#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

class KilledProgramTest : public ReconcilerTest {
 protected:
  KilledProgramTest() { Create("  parallelTrialCount: 1\n"); }

  // An attempt that ends by SIGKILL: of a process of this machine (`pid`), or of a pod.
  void KillOne(int64_t pid, bool saved = false) {
    executor_.observed.reset();
    clock_.Advance(absl::Minutes(2));  // no wait is longer
    Pass();
    Pass();
    trial::AttemptStatus ended;
    ended.state = trial::AttemptStatus::State::kExited;
    ended.signal = 9;
    *ended.placement.mutable_start_time() = ToProto(clock_.Now());
    ended.placement.set_pid(pid);
    if (saved) ended.checkpoints.push_back(Save());
    executor_.observed = ended;
    Pass();
    Pass();
  }
  v1::Checkpoint Save() {
    v1::Checkpoint save;
    save.set_namespace_(kKey.ns);
    save.set_experiment(kKey.name);
    save.set_trial(1);
    save.set_attempt(Trial().attempts());
    save.set_step(++step_);
    *save.mutable_time() = ToProto(clock_.Now());
    return save;
  }
  v1::Trial Trial() { return store_->GetTrial({kKey, 1})->record; }

 private:
  int64_t step_ = 0;
};

TEST_F(KilledProgramTest, TheFifthTimeInARowItHasFailed) {
  for (int kill = 1; kill < 5; ++kill) {
    KillOne(/*pid=*/41);
    EXPECT_EQ(Trial().phase(), v1::TRIAL_PENDING) << kill;
    EXPECT_EQ(Trial().failures(), 0);
  }
  KillOne(41);
  EXPECT_EQ(Trial().phase(), v1::TRIAL_FAILED);
  EXPECT_EQ(Trial().reason(), "KilledWithoutProgress");
  EXPECT_EQ(Trial().message(), "ended by signal 9");
  EXPECT_EQ(Trial().preemptions(), 4);
}

TEST_F(KilledProgramTest, WhatItSavesBetweenIsProgress) {
  for (int kill = 1; kill <= 12; ++kill) {
    KillOne(41, /*saved=*/kill % 4 == 0);
    EXPECT_EQ(Trial().phase(), v1::TRIAL_PENDING) << kill;
  }
}

// There SIGKILL is how machines are taken away, and it may be all that is seen of it.
TEST_F(KilledProgramTest, APodIsLostWithItsMachine) {
  for (int kill = 1; kill <= 12; ++kill) {
    KillOne(/*pid=*/0);
    EXPECT_EQ(Trial().phase(), v1::TRIAL_PENDING) << kill;
  }
}

}  // namespace
}  // namespace shirabe::experiment
