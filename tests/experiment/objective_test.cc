#include "experiment/spec/objective_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace shirabe::experiment {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

v1::ObjectiveSpec Objective(v1::ObjectiveType type, v1::MetricStrategyType strategy) {
  v1::ObjectiveSpec objective;
  objective.set_type(type);
  objective.set_objective_metric_name("loss");
  v1::MetricStrategy* entry = objective.add_metric_strategies();
  entry->set_name("loss");
  entry->set_value(strategy);
  return objective;
}

v1::Observation Observed(const std::vector<double>& values) {
  v1::Observation observation;
  for (size_t i = 0; i < values.size(); ++i) {
    AddValue(observation, "loss", static_cast<int64_t>(i) + 1, values[i]);
  }
  return observation;
}

TEST(ObjectiveOf, FollowsTheStrategy) {
  const v1::Observation observation = Observed({0.5, 0.2, 0.9, 0.4});
  const auto min = ObjectiveOf(Objective(v1::MINIMIZE, v1::MIN), observation);
  const auto max = ObjectiveOf(Objective(v1::MINIMIZE, v1::MAX), observation);
  const auto latest = ObjectiveOf(Objective(v1::MINIMIZE, v1::LATEST), observation);
  EXPECT_EQ(min->value, 0.2);
  EXPECT_EQ(min->step, 2);
  EXPECT_EQ(max->value, 0.9);
  EXPECT_EQ(max->step, 3);
  EXPECT_EQ(latest->value, 0.4);
  EXPECT_EQ(latest->step, 4);
}

// Katib's defect 5: a diverged trial became the best one.
TEST(ObjectiveOf, NotANumberIsNeverTheObjective) {
  EXPECT_EQ(ObjectiveOf(Objective(v1::MINIMIZE, v1::MIN), Observed({kNan, 0.5, 0.7}))->value, 0.5);
  EXPECT_FALSE(ObjectiveOf(Objective(v1::MINIMIZE, v1::MIN), Observed({kNan, kInf})));
  EXPECT_FALSE(ObjectiveOf(Objective(v1::MAXIMIZE, v1::MAX), Observed({kNan, kInf, -kInf})));
  EXPECT_FALSE(ObjectiveOf(Objective(v1::MINIMIZE, v1::LATEST), Observed({0.5, kNan})));
  EXPECT_FALSE(ObjectiveOf(Objective(v1::MINIMIZE, v1::MIN), Observed({})));
}

TEST(AddValue, LatestIsTheGreatestStepAndTheLastWriteOfIt) {
  v1::Observation observation;
  AddValue(observation, "loss", 10, 1.0);
  AddValue(observation, "loss", 5, 2.0);
  EXPECT_EQ(FindMetric(observation, "loss")->latest(), 1.0);
  AddValue(observation, "loss", 10, 3.0);
  EXPECT_EQ(FindMetric(observation, "loss")->latest(), 3.0);
  EXPECT_EQ(FindMetric(observation, "loss")->count(), 3);
  EXPECT_EQ(FindMetric(observation, "accuracy"), nullptr);
}

TEST(StrategyOf, WithoutOneTheDirectionDecides) {
  v1::ObjectiveSpec objective;
  objective.set_type(v1::MAXIMIZE);
  EXPECT_EQ(StrategyOf(objective, "x"), v1::MAX);
  objective.set_type(v1::MINIMIZE);
  EXPECT_EQ(StrategyOf(objective, "x"), v1::MIN);
}

TEST(ReachesGoal, InItsDirectionAndOnlyWithAGoal) {
  v1::ObjectiveSpec objective = Objective(v1::MAXIMIZE, v1::MAX);
  EXPECT_FALSE(ReachesGoal(objective, 1e9));
  objective.set_goal(0.99);
  EXPECT_TRUE(ReachesGoal(objective, 0.99));
  EXPECT_FALSE(ReachesGoal(objective, 0.98));
  objective.set_type(v1::MINIMIZE);
  EXPECT_TRUE(ReachesGoal(objective, 0.98));
  objective.set_goal(0);
  EXPECT_TRUE(ReachesGoal(objective, 0)) << "0 is a goal like any other";
}

}  // namespace
}  // namespace shirabe::experiment
