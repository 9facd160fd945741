// The phases of an attempt in its owner's memory: which may follow which, and what a step makes of
// them.
#include <gtest/gtest.h>

#include "experiment/state/active_trial.h"

namespace shirabe::experiment {
namespace {

using enum AttemptPhase;

constexpr AttemptPhase kAll[] = {kNone, kRecorded, kStarted, kRunning, kExited};

TEST(AttemptPhaseTest, EveryAttemptEndsThroughExited) {
  for (const AttemptPhase from : kAll) EXPECT_EQ(MayFollow(from, kNone), from == kExited);
}

TEST(AttemptPhaseTest, WhatWasSeenToRunIsNeverStartedAgain) {
  EXPECT_FALSE(MayFollow(kRunning, kRecorded));
  EXPECT_FALSE(MayFollow(kRunning, kStarted));
  EXPECT_TRUE(MayFollow(kStarted, kRecorded));
}

TEST(AttemptPhaseTest, NoPhaseFollowsItself) {
  for (const AttemptPhase phase : kAll) EXPECT_FALSE(MayFollow(phase, phase));
  AttemptMemory memory;
  memory.Enter(kNone);  // to stay is no transition
  memory.Enter(kRecorded);
  EXPECT_EQ(memory.phase, kRecorded);
}

TEST(AttemptPhaseDeathTest, RefusesAnIllegalTransition) {
  AttemptMemory memory;
  EXPECT_DEATH(memory.Enter(kRunning), "MayFollow");
}

}  // namespace
}  // namespace shirabe::experiment
