#include "suggestion/history.h"

#include <gtest/gtest.h>

#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

TEST(History, KnowsWhatHasBeenVisitedByValue) {
  const Space space = Make({Int("n", {1, 4}), Double("x", {0, 1})});
  History history(space);
  EXPECT_FALSE(history.Visited({0.1, 0.5}));
  history.Add({0.1, 0.5}, {});
  EXPECT_TRUE(history.Visited({0.1, 0.5}));
  EXPECT_TRUE(history.Visited({0.2, 0.5}));  // n = 1 as well
  EXPECT_FALSE(history.Visited({0.3, 0.5}));
  EXPECT_FALSE(history.Visited({0.1, 0.5000001}));
  history.Add({0.2, 0.5}, {});
  EXPECT_EQ(history.size(), 2);
  EXPECT_EQ(history.distinct(), 1);
}

TEST(History, KeepsTrialsInOrderAndUpdatesThem) {
  const Space space = Make({Double("x", {0, 1})});
  History history(space);
  history.Add({0.25}, {});
  history.Add({0.75}, {.state = TrialState::kCompleted, .loss = 3, .last_step = 9});
  history.Update(0, {.state = TrialState::kInfeasible});
  EXPECT_EQ(history.trial(0).state, TrialState::kInfeasible);
  EXPECT_EQ(history.trial(1).loss, 3);
  EXPECT_EQ(history.point(1), Point{0.75});
  EXPECT_EQ(history.coordinate(0, 0), 0.25);
}

TEST(History, LabelsAreFoundByName) {
  const Space space = Make({Double("x", {0, 1})});
  History history(space);
  history.Add({0.25}, {});
  history.Add({0.5}, {});
  history.SetLabels(1, {{"rung", "2"}, {"bracket", "0"}});
  EXPECT_EQ(history.label(1, "bracket"), "0");
  EXPECT_EQ(history.label(1, "other"), std::nullopt);
  EXPECT_EQ(history.label(0, "rung"), std::nullopt);
}

TEST(History, PriorTrialsAreSharedByCopiesAndCountAsNotVisited) {
  const Space space = Make({Double("x", {0, 1})});
  History history(space);
  EXPECT_TRUE(history.prior().empty());
  history.SetPrior({{.point = {0.25}, .loss = 3, .source = 1}});
  const History copy = history;
  EXPECT_EQ(&copy.prior(), &history.prior());
  ASSERT_EQ(copy.prior().size(), 1u);
  EXPECT_EQ(copy.prior()[0].point, Point{0.25});
  EXPECT_EQ(copy.prior()[0].source, 1);
  EXPECT_FALSE(history.Visited({0.25}));
  EXPECT_EQ(history.size(), 0);
}

}  // namespace
}  // namespace shirabe::suggestion
