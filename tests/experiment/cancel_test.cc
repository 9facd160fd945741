// How much time an experiment that is to end leaves its trials.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiment/reconciler_fixture.h"

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;

class CancelTest : public ReconcilerTest {
 protected:
  CancelTest() {
    Create("  parallelTrialCount: 1\n");
    Pass();
    executor_.observed = trial::AttemptStatus{};
    Pass();
  }
};

TEST_F(CancelTest, AStopLeavesThemTheirGrace) {
  Send(v1::Intent::STOP);
  Pass();
  EXPECT_THAT(executor_.graces, ElementsAre(absl::Seconds(15)));
}

TEST_F(CancelTest, ACancelLeavesThemNoneWhoeverCarriesItOut) {
  Send(v1::Intent::CANCEL);
  Pass();
  EXPECT_THAT(executor_.graces, ElementsAre(absl::ZeroDuration()));
  // The first controller ended between its commit and its call.
  TakeOver();
  Pass();
  EXPECT_THAT(executor_.graces, ElementsAre(absl::ZeroDuration(), absl::ZeroDuration()));
}

TEST_F(CancelTest, ACancelAfterAStopTakesTheGraceThatIsLeft) {
  Send(v1::Intent::STOP);
  Pass();
  Send(v1::Intent::CANCEL);
  Pass();
  TakeOver();
  Pass();
  EXPECT_THAT(executor_.graces,
              ElementsAre(absl::Seconds(15), absl::ZeroDuration(), absl::ZeroDuration()));
}

}  // namespace
}  // namespace shirabe::experiment
