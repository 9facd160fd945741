// The front as people see it, and the trial of it that they choose.
#include "view/result_front.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "experiment/spec/objective_value.h"
#include "view/best_trial.h"
#include "view/record_rows.h"

namespace shirabe::view {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Maximises accuracy, which is about 1, and minimises latency, which is about 1000; memory is at
// most 8.
class ResultFrontTest : public testing::Test {
 protected:
  ResultFrontTest() {
    experiment_.mutable_metadata()->set_name("a");
    v1::ExperimentSpec& spec = *experiment_.mutable_spec();
    spec.mutable_objective()->set_type(v1::MAXIMIZE);
    spec.mutable_objective()->set_objective_metric_name("accuracy");
    v1::AdditionalObjective& further = *spec.mutable_shirabe()->add_additional_objectives();
    further.set_metric_name("latency");
    further.set_type(v1::MINIMIZE);
    v1::ResultConstraint& constraint = *spec.mutable_shirabe()->add_constraints();
    constraint.set_metric_name("memory");
    constraint.set_max(8);
    for (const char* metric : {"accuracy", "latency", "memory"}) {
      v1::MetricStrategy& strategy = *spec.mutable_objective()->add_metric_strategies();
      strategy.set_name(metric);
      strategy.set_value(v1::LATEST);
    }
    spec.add_parameters()->set_name("lr");
  }

  v1::Trial Trial(int64_t number, double accuracy, double latency, double memory = 1) {
    v1::Trial trial;
    trial.set_experiment("a");
    trial.set_number(number);
    trial.set_phase(v1::TRIAL_SUCCEEDED);
    const std::pair<const char*, double> values[] = {
        {"accuracy", accuracy}, {"latency", latency}, {"memory", memory}};
    for (const auto& [metric, value] : values) {
      experiment::AddValue(*trial.mutable_observation(), metric, 3, value);
    }
    trial.set_objective(accuracy);
    trial.set_objective_step(3);
    v1::Assignment& assignment = *trial.add_assignments();
    assignment.set_name("lr");
    assignment.set_number(static_cast<double>(number) / 10);
    return trial;
  }
  int64_t Chosen(const FrontChoice& choice, const std::vector<v1::Trial>& trials) {
    std::vector<FrontCandidate> candidates;
    for (const v1::Trial& trial : trials) {
      if (auto one = CandidateOf(spec(), trial)) candidates.push_back(*std::move(one));
    }
    return ChooseTrial(spec(), choice, std::move(candidates)).value_or(0);
  }
  std::string Wrong(const FrontChoice& choice) { return Message(CheckChoice(spec(), choice)); }
  const v1::ExperimentSpec& spec() const { return experiment_.spec(); }

  v1::Experiment experiment_;
};

TEST_F(ResultFrontTest, WeightsAreOfPartsOfTheRange) {
  const std::vector<v1::Trial> trials = {
      Trial(1, 0.99, 1000), Trial(2, 0.95, 500),
      Trial(3, 0.60, 100),  Trial(4, 0.999, 50, 9.5),  // breaks memory
      Trial(5, 0.90, 700),                             // beaten by 2
  };
  EXPECT_EQ(Chosen({.weights = {"accuracy=1"}}, trials), 1);
  EXPECT_EQ(Chosen({.weights = {"latency=1"}}, trials), 3);
  // 1: 0 + 1, 2: 0.10 + 0.44, 3: 1 + 0.
  EXPECT_EQ(Chosen({.weights = {"accuracy=1", "latency=1"}}, trials), 2);
  EXPECT_EQ(Chosen({.weights = {"accuracy=1", "latency=10"}}, trials), 3);
  EXPECT_EQ(Chosen({.weights = {"accuracy=1e308", "latency=1e308"}}, trials), 2);
  EXPECT_EQ(Chosen({.order = {"accuracy"}}, trials), 1);
  EXPECT_EQ(Chosen({.order = {"latency"}}, trials), 3);
  EXPECT_EQ(Chosen({.order = {"latency"}}, {Trial(4, 1, 1, 9)}), 0) << "there is none";
}

TEST_F(ResultFrontTest, TheLowestNumberOfEquals) {
  const std::vector<v1::Trial> trials = {Trial(1, 0.9, 100), Trial(2, 0.9, 100)};
  EXPECT_EQ(Chosen({.order = {"latency", "accuracy"}}, trials), 1);
  EXPECT_EQ(Chosen({.weights = {"latency=2"}}, trials), 1);
}

TEST_F(ResultFrontTest, HugeValuesAreComparedToo) {
  const std::vector<v1::Trial> trials = {Trial(1, 1.7e308, 1.7e308), Trial(2, -1.7e308, -1.7e308),
                                         Trial(3, 1e308, 0)};
  EXPECT_EQ(Chosen({.weights = {"accuracy=1", "latency=1"}}, trials), 3);
}

TEST_F(ResultFrontTest, TheOneThatIsBestInTheOtherIsFoundAmongMany) {
  std::vector<v1::Trial> trials;
  for (int i = 1; i <= 500; ++i) trials.push_back(Trial(i, 1000 - i, 1000 - i));
  EXPECT_EQ(Chosen({.order = {"latency"}}, trials), 500);
}

TEST_F(ResultFrontTest, WhatCannotBeMeantIsRefused) {
  EXPECT_THAT(Wrong({.weights = {"accuracy"}}),
              HasSubstr("--weights: \"accuracy\" is not METRIC=WEIGHT"));
  EXPECT_THAT(Wrong({.weights = {"accuracy=0"}}), HasSubstr("above 0"));
  EXPECT_THAT(Wrong({.weights = {"accuracy=inf"}}), HasSubstr("finite"));
  EXPECT_THAT(Wrong({.weights = {"loss=1"}}), HasSubstr("it has accuracy, latency"));
  EXPECT_THAT(Wrong({.order = {"memory"}}), HasSubstr("--order: \"memory\" is no objective"));
  EXPECT_THAT(Wrong({.weights = {"accuracy=1"}, .order = {"latency"}}), HasSubstr("give one"));
  EXPECT_EQ(Wrong({.order = {"latency", "accuracy"}}), "");
  experiment_.mutable_spec()->mutable_shirabe()->clear_additional_objectives();
  EXPECT_THAT(Wrong({.order = {"accuracy"}}), HasSubstr("one objective, accuracy"));
  EXPECT_EQ(Wrong({}), "");
}

TEST_F(ResultFrontTest, OfTheChosenOneAllIsShown) {
  experiment_.mutable_status()->mutable_shirabe()->mutable_front()->set_size(3);
  const v1::Experiment chosen = view::WithBest(experiment_, Trial(7, 0.5, 20));
  const Json tree = BestJson(chosen);
  EXPECT_EQ(tree["trial"], "a-7");
  EXPECT_EQ(tree["step"], 3);
  EXPECT_FALSE(tree.contains("front"));
  EXPECT_THAT(BestTable(chosen, true), HasSubstr("latency"));
  EXPECT_THAT(BestTable(chosen, true), HasSubstr("20"));
  EXPECT_EQ(BestArguments(chosen), "--lr=0.7\n");
}

TEST_F(ResultFrontTest, ATableSaysWhatItDoesNotShow) {
  v1::ResultFront& front = *experiment_.mutable_status()->mutable_shirabe()->mutable_front();
  front.set_size(40);
  for (int i = 1; i <= 3; ++i) {
    v1::FrontTrial& trial = *front.add_trials();
    trial.set_trial_name("a-" + std::to_string(i));
    trial.add_values(i);
    trial.add_values(10 * i);
  }
  const std::string table = FrontTable(experiment_, true, 2);
  EXPECT_THAT(table, HasSubstr("a-2"));
  EXPECT_THAT(table, Not(HasSubstr("a-3")));
  EXPECT_THAT(table, HasSubstr("38 more on the front"));
  EXPECT_THAT(FrontLine(experiment_), HasSubstr("hypervolume is not measured"));
  front.set_hypervolume(0.5);
  front.add_reference(0.25);
  front.add_reference(90);
  EXPECT_EQ(FrontLine(experiment_),
            "40 trials, hypervolume 0.5 measured from accuracy 0.25, latency 90");
}

TEST_F(ResultFrontTest, WhatATrialBreaksIsSaidWithHowFar) {
  EXPECT_EQ(BrokenWords(spec(), Trial(1, 1, 1, 8)), "");
  EXPECT_EQ(BrokenWords(spec(), Trial(1, 1, 1, 9.5)), "memory by 1.5");
  EXPECT_THAT(ConstraintsTable(spec(), Trial(1, 1, 1, 9.5)), HasSubstr("no, broken by 1.5"));
  EXPECT_THAT(ConstraintsTable(spec(), Trial(1, 1, 1, 8)), HasSubstr("yes"));
  const Cells row = TrialRow(experiment_, Trial(1, 0.5, 20, 9.5), {});
  EXPECT_THAT(row, testing::Contains("memory by 1.5"));
  EXPECT_EQ(row.size(), TrialHeader(experiment_, {}).size());
  const Json tree = TrialRenderer(experiment_)(Trial(1, 0.5, 20, 9.5))["status"]["shirabe"];
  EXPECT_EQ(tree["constraints"][0]["brokenBy"], 1.5);
  EXPECT_EQ(tree["objectives"][1]["value"], 20);
}

}  // namespace
}  // namespace shirabe::view
