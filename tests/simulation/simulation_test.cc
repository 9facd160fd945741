// Seeded simulation of the reconciler, the store and an executor under faults. A failing seed is
// printed; `SHIRABE_SEED=n simulation_test` plays it again, `SHIRABE_SEEDS=n` runs more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "tests/simulation/scenario.h"

namespace shirabe::simulation {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The seeds that this run plays.
std::pair<uint64_t, uint64_t> Seeds() {
  if (const uint64_t one = FromEnvironment("SHIRABE_SEED", 0); one != 0) return {one, one + 1};
  return {1, 1 + FromEnvironment("SHIRABE_SEEDS", 1000)};
}

TEST(Simulation, InvariantsHoldUnderFaults) {
  SetLogLevel(LogLevel::kError);
  const auto [first, last] = Seeds();
  for (uint64_t seed = first; seed < last; ++seed) {
    Scenario scenario(seed);
    const std::string broken = scenario.Run();
    ASSERT_EQ(broken, "") << "play it again with SHIRABE_SEED=" << seed;
  }
}

// I10: faults delay suggestions, they do not change them.
TEST(Simulation, FaultsDoNotChangeWhatIsTried) {
  const auto [first, last] = Seeds();
  for (uint64_t seed = first; seed < std::min(last, first + 200); ++seed) {
    Scenario disturbed(seed);
    ASSERT_EQ(disturbed.Run(), "") << "seed " << seed;
    Scenario undisturbed(seed);
    undisturbed.faults = false;
    ASSERT_EQ(undisturbed.Run(), "") << "seed " << seed;
    const auto a = disturbed.Points(), b = undisturbed.Points();
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      ASSERT_EQ(a[i], b[i]) << "trial " << i + 1 << " of seed " << seed;
    }
  }
}

}  // namespace
}  // namespace shirabe::simulation
