// What an Experiment object shows of the record.
#include "crd/object_status.h"

#include <gtest/gtest.h>

#include <functional>

#include "kube/json_access.h"

namespace shirabe::crd {
namespace {

std::string CostShown(double cost, const std::string& currency = "") {
  v1::Experiment experiment;
  experiment.mutable_status()->mutable_shirabe()->set_cost(cost);
  experiment.mutable_spec()->mutable_shirabe()->mutable_budget()->set_currency(currency);
  return Text(ExperimentStatusJson(experiment, {}, {}), {"shirabe", "costText"});
}

TEST(ObjectStatusTest, MoneyHasACurrencyAndTwoDigits) {
  EXPECT_EQ(CostShown(0), "");
  EXPECT_EQ(CostShown(1e-9), "<0.01 USD");
  EXPECT_EQ(CostShown(0.0051), "0.01 USD");
  EXPECT_EQ(CostShown(0.4249), "0.42 USD");
  EXPECT_EQ(CostShown(12), "12.00 USD");
  EXPECT_EQ(CostShown(1234567.891, "JPY"), "1234567.89 JPY");
}

kube::Json StatusOf(const std::function<void(v1::ExperimentStatus&)>& edit) {
  v1::Experiment experiment;
  experiment.mutable_status()->mutable_shirabe()->set_cost(1);
  edit(*experiment.mutable_status());
  return ExperimentStatusJson(experiment, {{v1::TRIAL_RUNNING, {"t-1"}}}, {});
}

TEST(ObjectStatusTest, CountsAreNoLandmarks) {
  const kube::Json before = StatusOf([](v1::ExperimentStatus&) {});
  const auto counted = [](v1::ExperimentStatus& status) {
    status.set_trials(3);
    status.set_trials_running(2);
    status.set_trials_succeeded(1);
    status.mutable_shirabe()->set_cost(1.5);
    status.mutable_shirabe()->set_seconds(60);
  };
  EXPECT_TRUE(OnlySumsDiffer(before, StatusOf(counted)));
  EXPECT_FALSE(OnlySumsDiffer(before, StatusOf([&](v1::ExperimentStatus& status) {
                                counted(status);
                                status.mutable_shirabe()->set_waiting("no machine is free");
                              })));
  EXPECT_FALSE(OnlySumsDiffer(before, StatusOf([](v1::ExperimentStatus& status) {
                                status.mutable_current_optimal_trial()->set_best_trial_name("t-1");
                              })));
}

}  // namespace
}  // namespace shirabe::crd
