// Seeded simulation of the reconciler, the store and an executor under faults. A failing seed is
// printed; `SHIRABE_SEED=n simulation_test` plays it again, `SHIRABE_SEEDS=n` runs more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/tally.h"

namespace shirabe::simulation {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The seeds that this run plays.
std::pair<uint64_t, uint64_t> Seeds() {
  const uint64_t first = FromEnvironment("SHIRABE_SEED", 1);
  const uint64_t count =
      FromEnvironment("SHIRABE_SEEDS", std::getenv("SHIRABE_SEED") == nullptr ? 1000 : 1);
  return {first, first + count};
}

TEST(Simulation, InvariantsHoldUnderFaults) {
  SetLogLevel(LogLevel::kError);
  const auto [first, last] = Seeds();
  Tally tally;
  for (uint64_t seed = first; seed < last; ++seed) {
    Scenario scenario(seed);
    const std::string broken = scenario.Run();
    ASSERT_EQ(broken, "") << "play it again with SHIRABE_SEED=" << seed;
    scenario.AddTo(tally);
  }
  if (last - first < 1000) return;
  for (const char* what : kExpected) EXPECT_GT(tally[what], 0) << what << " was never met";
  for (const auto& [what, count] : tally) RecordProperty(what, std::to_string(count));
}

// To maximise is to minimise the negatives: the same points, the same ends, the same losses, under
// the same faults.
TEST(Simulation, MaximisingIsMinimisingTheNegatives) {
  SetLogLevel(LogLevel::kError);
  const auto [first, last] = Seeds();
  for (uint64_t seed = first; seed < std::min(last, first + 300); ++seed) {
    Scenario one(seed);
    ASSERT_EQ(one.Run(), "") << "seed " << seed;
    Scenario other(seed, Faults::kAll, /*mirrored=*/true);
    ASSERT_EQ(other.Run(), "") << "seed " << seed << ", mirrored";
    ASSERT_EQ(one.Points(), other.Points()) << "seed " << seed;
    ASSERT_EQ(one.Results(), other.Results()) << "seed " << seed;
  }
}

// I10: faults delay suggestions, they do not change them; but which trial ends first is theirs, so
// only what does not depend on results is compared.
TEST(Simulation, FaultsDoNotChangeWhatIsTried) {
  SetLogLevel(LogLevel::kError);
  const auto [first, last] = Seeds();
  for (uint64_t seed = first; seed < std::min(last, first + 300); ++seed) {
    if (IsAdaptive(seed)) continue;
    Scenario disturbed(seed);
    ASSERT_EQ(disturbed.Run(), "") << "seed " << seed;
    Scenario undisturbed(seed, Faults::kNone);
    ASSERT_EQ(undisturbed.Run(), "") << "seed " << seed;
    const auto a = disturbed.Points(), b = undisturbed.Points();
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      ASSERT_EQ(a[i], b[i]) << "trial " << i + 1 << " of seed " << seed;
    }
  }
}

// Whatever the platform does to the machines, every trial ends as it would have undisturbed, with
// the same result: nothing failed, nothing is missing, the same trial is the best.
TEST(Simulation, PreemptionCostsSecondsAndNeverATrial) {
  SetLogLevel(LogLevel::kError);
  const auto [first, last] = Seeds();
  for (uint64_t seed = first; seed < std::min(last, first + 300); ++seed) {
    Scenario disturbed(seed, Faults::kPreemption);
    ASSERT_EQ(disturbed.Run(), "") << "seed " << seed;
    Scenario undisturbed(seed, Faults::kNone);
    ASSERT_EQ(undisturbed.Run(), "") << "seed " << seed;
    ASSERT_EQ(disturbed.Results(), undisturbed.Results()) << "seed " << seed;
    ASSERT_EQ(disturbed.Experiment().status().trials_failed(), 0) << "seed " << seed;
    ASSERT_EQ(disturbed.Experiment().status().current_optimal_trial().best_trial_name(),
              undisturbed.Experiment().status().current_optimal_trial().best_trial_name())
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace shirabe::simulation
