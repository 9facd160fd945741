// What an Experiment object shows of the record.
#include "crd/object_status.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace shirabe::crd
