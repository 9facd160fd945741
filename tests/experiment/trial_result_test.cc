// What a trial's metrics come to with several objectives and constraints, and the front of them.
#include "experiment/spec/trial_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/state/result_front.h"
#include "tests/experiment/specs.h"

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFurther[] = R"(  shirabe:
    additionalObjectives: [{metricName: accuracy, type: maximize, goal: 0.9}]
    constraints: [{metricName: memory, max: 16}, {metricName: recall, min: 0.5, max: 0.8}]
  parameters:
)";

v1::Experiment Made(const std::string& further = kFurther) {
  return ParseOnly(Replaced(kGood, "  parameters:\n", further));
}

v1::Trial Ended(const v1::ExperimentSpec& spec,
                const std::vector<std::pair<std::string, double>>& values, int64_t number = 1) {
  v1::Trial trial;
  trial.set_number(number);
  trial.set_phase(v1::TRIAL_SUCCEEDED);
  int64_t step = 0;
  for (const auto& [metric, value] : values) {
    AddValue(*trial.mutable_observation(), metric, ++step, value);
  }
  if (const auto objective = ObjectiveOf(spec.objective(), trial.observation())) {
    trial.set_objective(objective->value);
  }
  return trial;
}

TEST(TrialResult, LossesAreMinimisedAndMarginsKeepTheirBounds) {
  const v1::ExperimentSpec spec = Made().spec();
  const auto result = ResultOf(
      spec, Ended(spec, {{"loss", 0.25}, {"accuracy", 0.5}, {"memory", 20}, {"recall", 0.75}}));
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->losses, ElementsAre(0.25, -0.5));
  EXPECT_THAT(result->margins, ElementsAre(-4, 0.25, testing::DoubleNear(0.05, 1e-12)));
  EXPECT_FALSE(result->feasible());
  EXPECT_EQ(CountBounds(spec), 3);
  EXPECT_EQ(BrokenBy(spec.shirabe().constraints(0), 20), 4);
  EXPECT_EQ(BrokenBy(spec.shirabe().constraints(1), 0.25), 0.25);
  EXPECT_EQ(BrokenBy(spec.shirabe().constraints(1), 0.5), 0);
}

TEST(TrialResult, OfSeveralValuesTheLatestCountsUnlessAStrategySaysAnother) {
  v1::ExperimentSpec spec = Made().spec();
  const auto trial = [&] {
    return Ended(spec, {{"accuracy", 0.9},
                        {"accuracy", 0.5},
                        {"memory", 3},
                        {"memory", 1},
                        {"recall", 0.6},
                        {"loss", 1}});
  };
  EXPECT_THAT(ResultOf(spec, trial())->losses, ElementsAre(1, -0.5));
  for (auto& strategy : *spec.mutable_objective()->mutable_metric_strategies()) {
    if (strategy.name() != "loss") strategy.set_value(v1::MAX);
  }
  const auto result = ResultOf(spec, trial());
  EXPECT_THAT(result->losses, ElementsAre(1, -0.9));
  EXPECT_EQ(result->margins[0], 13);
}

TEST(TrialResult, WhatIsMissingIsNamedWithTheFieldThatAsksForIt) {
  const v1::ExperimentSpec spec = Made().spec();
  const auto missing = [&](const std::vector<std::pair<std::string, double>>& values) {
    const v1::Trial trial = Ended(spec, values);
    EXPECT_FALSE(ResultOf(spec, trial).has_value());
    EXPECT_EQ(TrialSummaryOf(spec, trial).state, suggestion::TrialState::kInfeasible);
    return MissingFrom(spec, trial);
  };
  EXPECT_EQ(missing({{"loss", 1}, {"memory", 1}, {"recall", 0.5}}),
            "accuracy was never reported: spec.shirabe.additionalObjectives asks for it");
  EXPECT_EQ(missing({{"loss", 1}, {"accuracy", 1}, {"memory", 1}}),
            "recall was never reported: spec.shirabe.constraints asks for it");
  EXPECT_THAT(missing({{"loss", 1}, {"accuracy", 1}, {"memory", NAN}, {"recall", 0.5}}),
              HasSubstr("memory was never a finite number"));
}

// Of one objective, with that rule: what a trial is that has ended in this phase with this loss.
TEST(TrialResult, WhatItsRuleStoppedMayBeNoResult) {
  const auto made = [](const std::string& stopping) {
    return ParseOnly(
               Replaced(kGood, "  parameters:\n",
                        "  earlyStopping: {algorithmName: " + stopping + "}\n  parameters:\n"))
        .spec();
  };
  const v1::ExperimentSpec bounded =
      made("threshold, algorithmSettings: [{name: lower, value: \"0\"}]");
  const v1::ExperimentSpec folds = made("wilcoxon");
  const auto stopped = [](const v1::ExperimentSpec& spec, double loss) {
    v1::Trial trial = Ended(spec, {{"loss", loss}});
    trial.set_phase(v1::TRIAL_EARLY_STOPPED);
    trial.set_reason("TrialEarlyStopped");
    return trial;
  };
  EXPECT_FALSE(ResultOf(bounded, stopped(bounded, -50)).has_value());
  EXPECT_EQ(TrialSummaryOf(bounded, stopped(bounded, -50)).state,
            suggestion::TrialState::kInfeasible);
  EXPECT_TRUE(ResultOf(bounded, stopped(bounded, 1)).has_value());
  EXPECT_TRUE(ResultOf(bounded, Ended(bounded, {{"loss", -50}})).has_value()) << "not stopped";
  EXPECT_FALSE(ResultOf(folds, stopped(folds, 1)).has_value());
  const suggestion::TrialSummary part = TrialSummaryOf(folds, stopped(folds, 1));
  EXPECT_EQ(part.state, suggestion::TrialState::kCompleted) << "algorithms learn from it";
  EXPECT_TRUE(part.partial);
  EXPECT_FALSE(TrialSummaryOf(folds, Ended(folds, {{"loss", 1}})).partial);
  v1::Trial by_user = stopped(folds, 1);
  by_user.set_reason("StoppedByUser");
  EXPECT_TRUE(ResultOf(folds, by_user).has_value());
}

TEST(TrialResult, ABoundThatIsFarAwayIsKeptOrBrokenAllTheSame) {
  v1::ExperimentSpec spec = Made().spec();
  const v1::Trial trial =
      Ended(spec, {{"loss", 1}, {"accuracy", 1}, {"memory", 1.7e308}, {"recall", 0.5}});
  spec.mutable_shirabe()->mutable_constraints(0)->set_max(-1.7e308);
  ASSERT_TRUE(ResultOf(spec, trial).has_value());
  EXPECT_EQ(ResultOf(spec, trial)->margins[0], -std::numeric_limits<double>::max());
  EXPECT_EQ(BrokenBy(spec.shirabe().constraints(0), 1.7e308), std::numeric_limits<double>::max());
  spec.mutable_shirabe()->mutable_constraints(0)->clear_max();
  spec.mutable_shirabe()->mutable_constraints(0)->set_min(-1.7e308);
  EXPECT_TRUE(ResultOf(spec, trial)->feasible());
}

TEST(TrialResult, TheirMetricsAreCollected) {
  const v1::ObjectiveSpec objective = Made().spec().objective();
  EXPECT_THAT(WantedMetrics(objective), ElementsAre("loss", "accuracy", "memory", "recall"));
  EXPECT_EQ(StrategyOf(objective, "memory"), v1::LATEST);
  EXPECT_EQ(StrategyOf(objective, "loss"), v1::MIN);
  // Read once more, nothing is added.
  v1::Experiment again = Made();
  SetDefaults(again);
  EXPECT_EQ(again.spec().objective().SerializeAsString(), objective.SerializeAsString());
}

struct RuleCase {
  const char* shirabe;
  const char* finding;
};

TEST(TrialResult, WhatCannotBeMeantIsRefused) {
  const RuleCase kCases[] = {
      {"additionalObjectives: [{metricName: loss, type: minimize}]",
       "additionalObjectives[0].metricName: \"loss\" is an objective already"},
      {"additionalObjectives: [{metricName: a}]", "additionalObjectives[0].type: is required"},
      {"additionalObjectives: [{type: minimize}]", "additionalObjectives[0].metricName"},
      {"additionalObjectives: [{metricName: a, type: minimize, goal: .nan}]", "goal"},
      {"constraints: [{metricName: a}]", "constraints[0]: give min, max or both"},
      {"constraints: [{metricName: a, min: 2, max: 1}]", "min 2 is greater than max 1: swap them"},
      {"constraints: [{metricName: a, max: 1}, {metricName: a, min: 0}]",
       "constraints[1].metricName: \"a\" has a constraint already"},
      {"constraints: [{metricName: a, max: .inf}]", "constraints[0].max"},
      {"constraints: [{metricName: a, max: 1, stopEarly: true}]",
       "constraints[0].stopEarly: a value of \"a\" can still come back: give it a strategy of max"},
      {"constraints: [{metricName: accuracy, min: 1, stopEarly: true}]",
       "give it a strategy of min in objective.metricStrategies"},
      {"objectiveReference: 3", "objectiveReference: is where the hypervolume"},
      {"additionalObjectives: [{metricName: a, type: minimize}]\n    warmStart: {experiments: [b]}",
       "warmStart: earlier results have one objective"},
      {"additionalObjectives: [{metricName: a, type: minimize}]\n    stopWhen: "
       "{noImprovementTrials: 3, minImprovement: 0.1}",
       "minImprovement: is of one objective"},
      {"additionalObjectives: [{metricName: a, type: minimize}]\n    stopWhen: {regretBelow: 0.1}",
       "regretBelow"},
  };
  for (const RuleCase& c : kCases) {
    const std::string text = Replaced(
        kGood, "  parameters:\n", absl::StrCat("  shirabe:\n    ", c.shirabe, "\n  parameters:\n"));
    EXPECT_THAT(FindingsOf(text), ElementsAre(HasSubstr(c.finding))) << c.shirabe;
  }
  const auto with = [](const std::string& spec) {
    return FindingsOf(Replaced(kGood, "  parameters:\n", spec + kFurther));
  };
  EXPECT_THAT(with(""), IsEmpty());
  EXPECT_THAT(with("  earlyStopping: {algorithmName: medianstop}\n"), IsEmpty());
  EXPECT_THAT(with("  earlyStopping: {algorithmName: wilcoxon}\n"),
              ElementsAre(HasSubstr("with several use asha-stop, medianstop")));
  EXPECT_THAT(with("  algorithm: {algorithmName: cmaes}\n"),
              ElementsAre(HasSubstr("spec.algorithm.algorithmName")));
}

TEST(TrialResult, MoreThanAFewAreRefusedBeforeAnythingIsMadeOfThem) {
  v1::Experiment experiment = Made();
  for (int i = 0; i < 100'000; ++i) {
    experiment.mutable_spec()->mutable_shirabe()->add_constraints()->set_metric_name(
        std::to_string(i));
  }
  const int metrics = experiment.spec().objective().additional_metric_names_size();
  SetDefaults(experiment);
  EXPECT_EQ(experiment.spec().objective().additional_metric_names_size(), metrics);
  EXPECT_THAT(Lines(Validate(experiment)),
              testing::Contains(HasSubstr("spec.shirabe.constraints")));
}

// ---- the front ---------------------------------------------------------------------------------

class FrontTest : public testing::Test {
 protected:
  FrontTest() : history_(*suggestion::Space::Create(experiment_.spec().parameters())) {}

  bool Add(double loss, double accuracy, double memory = 0) {
    const int64_t number = history_.size() + 1;
    history_.Add(
        suggestion::Point(history_.space().size(), 0.0),
        TrialSummaryOf(
            experiment_.spec(),
            Ended(experiment_.spec(),
                  {{"loss", loss}, {"accuracy", accuracy}, {"memory", memory}, {"recall", 0.5}},
                  number)));
    return front_.Add(history_, number - 1);
  }
  v1::ResultFront Status() { return front_.ToStatus(experiment_, history_); }
  std::vector<int64_t> Numbers() {
    std::vector<int64_t> numbers;
    const v1::ResultFront status = Status();
    for (const v1::FrontTrial& trial : status.trials()) numbers.push_back(trial.number());
    return numbers;
  }

  v1::Experiment experiment_ = Made();
  suggestion::History history_;
  ResultFront front_;
};

TEST_F(FrontTest, OnlyWhatNoneIsBetterThanAndKeepsTheConstraints) {
  EXPECT_TRUE(Add(0.5, 0.5));
  EXPECT_FALSE(Add(0.4, 0.6, 17)) << "breaks memory";
  EXPECT_FALSE(Add(0.5, 0.5)) << "as good as the first, and later";
  EXPECT_FALSE(Add(0.6, 0.4));
  EXPECT_TRUE(Add(0.6, 0.7));
  EXPECT_TRUE(Add(0.2, 0.1));
  EXPECT_THAT(Numbers(), ElementsAre(6, 1, 5)) << "by the loss";
  EXPECT_TRUE(Add(0.2, 0.7));
  EXPECT_THAT(Numbers(), ElementsAre(7));
  const v1::ResultFront status = Status();
  EXPECT_EQ(status.size(), 1);
  EXPECT_THAT(status.trials(0).values(), ElementsAre(0.2, 0.7));
  EXPECT_EQ(status.trials(0).trial_name(), "good-7");
  EXPECT_EQ(status.trials(0).parameter_assignments_size(), experiment_.spec().parameters_size());
}

TEST_F(FrontTest, TheReferenceIsTheWorstResultOrTheSpecified) {
  Add(0.5, 0.5);
  Add(0.2, 0.25);
  Add(0.9, 0.1, 17);
  EXPECT_THAT(Status().reference(), ElementsAre(0.9, 0.1)) << "breaking a constraint, too";
  // 0.4 × 0.4 and, of the second, 0.3 × 0.15 more.
  EXPECT_NEAR(Status().hypervolume(), 0.16 + 0.045, 1e-12);
  experiment_.mutable_spec()->mutable_shirabe()->set_objective_reference(1);
  experiment_.mutable_spec()->mutable_shirabe()->mutable_additional_objectives(0)->set_reference(0);
  EXPECT_THAT(Status().reference(), ElementsAre(1, 0));
  EXPECT_NEAR(Status().hypervolume(), 0.5 * 0.5 + 0.3 * 0.25, 1e-12);
}

TEST_F(FrontTest, WhatReachesAllGoalsComesFirst) {
  experiment_.mutable_spec()->mutable_objective()->set_goal(0.5);
  Add(0.1, 0.5);
  Add(0.45, 0.95);
  EXPECT_THAT(Numbers(), ElementsAre(2, 1));
  EXPECT_TRUE(ReachesGoals(experiment_.spec(), {0.45, -0.95}));
  EXPECT_FALSE(ReachesGoals(experiment_.spec(), {0.1, -0.5}));
  EXPECT_FALSE(ReachesGoals(experiment_.spec(), {0.6, -0.95}));
  EXPECT_FALSE(ReachesGoals(Made("  parameters:\n").spec(), {-1e9})) << "none is given";
}

TEST_F(FrontTest, OfManyTheFirstHundredAreShown) {
  for (int i = 0; i < 150; ++i) Add(i / 200.0, 0.5 + i / 400.0);
  const v1::ResultFront status = Status();
  EXPECT_EQ(status.size(), 150);
  EXPECT_EQ(status.trials_size(), 100);
  EXPECT_EQ(status.trials(99).number(), 100);
  EXPECT_TRUE(status.has_hypervolume());
}

// A controller that takes over adds by number, one that goes on as they end.
TEST_F(FrontTest, IsTheSameInWhateverOrderTheyEnd) {
  const v1::ExperimentSpec& spec = experiment_.spec();
  Rng rng(3);
  std::vector<v1::Trial> trials;
  for (int number = 1; number <= 50; ++number) {
    trials.push_back(Ended(spec,
                           {{"loss", static_cast<double>(rng.Below(6))},
                            {"accuracy", static_cast<double>(rng.Below(6))},
                            {"memory", 0},
                            {"recall", 0.5}},
                           number));
    history_.Add(suggestion::Point(history_.space().size(), 0.0),
                 TrialSummaryOf(spec, trials.back()));
  }
  ResultFront backwards;
  v1::Experiment offered = experiment_, other = experiment_;
  for (int64_t i = 0; i < 50; ++i) {
    front_.Add(history_, i);
    backwards.Add(history_, 49 - i);
    OfferBest(trials[i], offered);
    OfferBest(trials[49 - i], other);
  }
  EXPECT_EQ(Status().SerializeAsString(),
            backwards.ToStatus(experiment_, history_).SerializeAsString());
  // The best is the first of the front, by the losses.
  EXPECT_EQ(offered.status().current_optimal_trial().number(), Numbers()[0]);
  EXPECT_EQ(other.status().current_optimal_trial().number(), Numbers()[0]);
}

TEST_F(FrontTest, AnEqualResultIsNoImprovement) {
  EXPECT_TRUE(Add(0.5, 0.5));
  history_.Add(suggestion::Point(history_.space().size(), 0.0), history_.trial(0));
  EXPECT_FALSE(front_.Add(history_, 1));
  EXPECT_THAT(Numbers(), ElementsAre(1));
}

TEST_F(FrontTest, LongParametersAreLeftOutBeyondALimit) {
  v1::Experiment experiment = experiment_;
  v1::ParameterSpec& parameter = *experiment.mutable_spec()->add_parameters();
  parameter.set_name("prompt");
  parameter.set_parameter_type(v1::CATEGORICAL);
  parameter.mutable_feasible_space()->add_list(std::string(12'000, 'a'));
  parameter.mutable_feasible_space()->add_list("b");
  history_ = suggestion::History(*suggestion::Space::Create(experiment.spec().parameters()));
  for (int i = 0; i < 50; ++i) Add(i / 200.0, 0.5 + i / 400.0);
  const v1::ResultFront status = front_.ToStatus(experiment, history_);
  EXPECT_EQ(status.trials_size(), 50);
  EXPECT_GT(status.trials(0).parameter_assignments_size(), 0);
  EXPECT_EQ(status.trials(49).parameter_assignments_size(), 0);
  EXPECT_EQ(status.trials(49).values_size(), 2);
  EXPECT_LT(status.ByteSizeLong(), ResultFront::kMostParameterBytes + 20'000);
}

TEST_F(FrontTest, OfThreeObjectivesTheComparisonsAreBounded) {
  v1::AdditionalObjective& third =
      *experiment_.mutable_spec()->mutable_shirabe()->add_additional_objectives();
  third.set_metric_name("time");
  third.set_type(v1::MINIMIZE);
  suggestion::TrialSummary summary{.state = suggestion::TrialState::kCompleted};
  const int many = static_cast<int>(ResultFront::kMostMembers) + 500;
  for (int i = 0; i < many; ++i) {
    summary.loss = i;
    summary.further_losses = {static_cast<double>(-i), 0};
    history_.Add(suggestion::Point(history_.space().size(), 0.0), summary);
    EXPECT_TRUE(front_.Add(history_, i));
  }
  EXPECT_EQ(Status().size(), many);
  EXPECT_FALSE(Status().has_hypervolume());
}

// By comparing each with each.
TEST_F(FrontTest, EqualsTheDefinition) {
  Rng rng(7);
  for (int round = 0; round < 20; ++round) {
    history_ = suggestion::History(history_.space());
    front_ = ResultFront();
    std::vector<std::pair<double, double>> all;
    for (int i = 0; i < 60; ++i) {
      const double loss = static_cast<double>(rng.Below(12)), accuracy = rng.Below(12) / 12.0;
      Add(loss, accuracy);
      all.emplace_back(loss, -accuracy);
    }
    std::vector<int64_t> expected;
    for (size_t i = 0; i < all.size(); ++i) {
      bool beaten = false;
      for (size_t j = 0; j < all.size(); ++j) {
        const bool as_good = all[j].first <= all[i].first && all[j].second <= all[i].second;
        beaten = beaten || (as_good && (all[j] != all[i] || j < i));
      }
      if (!beaten) expected.push_back(static_cast<int64_t>(i) + 1);
    }
    EXPECT_THAT(Numbers(), testing::UnorderedElementsAreArray(expected));
  }
}

}  // namespace
}  // namespace shirabe::experiment
