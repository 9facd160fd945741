// F1: the controller is killed between any two effects of its passes, at each of them in turn, and
// started again. Every run must end as the one without a crash: the same points, phases, results,
// and the same ledger to the microsecond.
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/simulation/scenario.h"

namespace shirabe::simulation {
namespace {

constexpr uint64_t kSeeds[] = {4, 11};
constexpr uint64_t kStoppingSeeds[] = {5, 21, 24, 28};  // short ones; the last is a population

TEST(CrashPoints, EveryOneEndsInTheSameState) {
  SetLogLevel(LogLevel::kError);
  for (const uint64_t seed : kSeeds) {
    Scenario whole(seed, Faults::kPreemption);
    ASSERT_EQ(whole.RunScripted(), "") << "seed " << seed;
    ASSERT_GT(whole.steps(), 50) << "at_step is not called";
    for (int64_t step = 1; step <= whole.steps(); ++step) {
      Scenario crashed(seed, Faults::kPreemption);
      crashed.crash_at = step;
      ASSERT_EQ(crashed.RunScripted(), "") << "seed " << seed << ", crash at step " << step;
      ASSERT_EQ(crashed.Points(), whole.Points()) << "seed " << seed << ", step " << step;
      ASSERT_EQ(crashed.Ledger(), whole.Ledger()) << "seed " << seed << ", step " << step;
    }
  }
}

// A crash moves a stop by a millisecond, and with it what a trial cost; nothing else may change.
TEST(CrashPoints, EarlyStopsSurviveEachOfThem) {
  SetLogLevel(LogLevel::kError);
  int64_t stopped = 0;
  for (const uint64_t seed : kStoppingSeeds) {
    Scenario whole(seed, Faults::kAll);
    ASSERT_EQ(whole.RunScripted(), "") << "seed " << seed;
    stopped += whole.Experiment().status().trials_early_stopped();
    for (int64_t step = 1; step <= whole.steps(); ++step) {
      Scenario crashed(seed, Faults::kAll);
      crashed.crash_at = step;
      ASSERT_EQ(crashed.RunScripted(), "") << "seed " << seed << ", crash at step " << step;
    }
  }
  EXPECT_GT(stopped, 0);
}

}  // namespace
}  // namespace shirabe::simulation
