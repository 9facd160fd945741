#include "view/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/records.h"
#include "view/spec_diff.h"
#include "view/wait_condition.h"

namespace shirabe::view {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ComparedExperiment Search(const std::vector<double>& losses, v1::ObjectiveType type) {
  ComparedExperiment compared{.experiment = MakeExperiment()};
  compared.experiment.mutable_spec()->mutable_objective()->set_type(type);
  for (const double loss : losses) {
    v1::Trial trial;
    trial.set_phase(v1::TRIAL_SUCCEEDED);
    trial.set_number(static_cast<int64_t>(compared.trials.size()) + 1);
    trial.set_objective(loss);
    compared.trials.push_back(trial);
  }
  return compared;
}

TEST(Compare, TheBestIsThatOfEquallyManyTrials) {
  const ComparedExperiment down = Search({3, 2, 4, 1}, v1::MINIMIZE);
  EXPECT_EQ(BestAfter(down, 0), std::nullopt);
  EXPECT_EQ(BestAfter(down, 1), 3);
  EXPECT_EQ(BestAfter(down, 3), 2);
  EXPECT_EQ(BestAfter(down, 9), 1);
  EXPECT_EQ(BestAfter(Search({3, 2, 4}, v1::MAXIMIZE), 3), 4);
}

TEST(Compare, TrialsThatRunOrHaveNoResultDoNotCount) {
  ComparedExperiment compared = Search({3, 2, 1}, v1::MINIMIZE);
  compared.trials[0].set_phase(v1::TRIAL_RUNNING);
  compared.trials[1].clear_objective();
  EXPECT_EQ(BestAfter(compared, 1), std::nullopt);
  EXPECT_EQ(BestAfter(compared, 2), 1);
}

TEST(Compare, CountsAreThoseThatAllHave) {
  const auto counts = [](size_t a, size_t b) {
    return EqualCounts({Search(std::vector<double>(a, 1), v1::MINIMIZE),
                        Search(std::vector<double>(b, 1), v1::MINIMIZE)});
  };
  EXPECT_THAT(counts(12, 40), ElementsAre(1, 2, 5, 10, 12));
  EXPECT_THAT(counts(1, 40), ElementsAre(1));
  EXPECT_THAT(counts(0, 40), IsEmpty());
}

TEST(Compare, OnlyParametersThatDifferAreShown) {
  ComparedTrial a{.experiment = MakeExperiment()}, b{.experiment = MakeExperiment()};
  AddAssignments({.lr = 0.5}, *a.trial.mutable_assignments());
  AddAssignments({.lr = 0.25}, *b.trial.mutable_assignments());
  EXPECT_THAT(CompareTable({a, b}, false), HasSubstr("\nlr            0.5       0.25\n"));
  EXPECT_THAT(CompareTable({a, b}, false), Not(HasSubstr("\nbs")));
  EXPECT_THAT(CompareTable({a, b}, true), HasSubstr("\nbs"));
  EXPECT_EQ(CompareJson({a, b})["differs"], Json::array({"lr"}));
}

TEST(SpecDiff, FindsWhatMayChangeAndWhatMayNot) {
  const v1::Experiment stored = MakeExperiment();
  EXPECT_THAT(DiffSpecs(stored, stored), IsEmpty());
  v1::Experiment wanted = stored;
  wanted.mutable_spec()->clear_max_trial_count();
  wanted.mutable_spec()->mutable_objective()->set_goal(0.5);
  wanted.mutable_spec()->mutable_parameters(1)->mutable_feasible_space()->set_max(32);
  wanted.mutable_spec()->mutable_parameters(1)->set_name("another");
  std::vector<std::string> paths;
  std::string text;
  for (const SpecDifference& difference : DiffSpecs(stored, wanted)) {
    paths.push_back(difference.path);
    text += DifferenceText(difference);
    EXPECT_EQ(difference.changeable, difference.path != "spec.parameters[1].name");
  }
  EXPECT_THAT(paths, testing::UnorderedElementsAre("spec.objective.goal", "spec.maxTrialCount",
                                                   "spec.parameters[1].feasibleSpace.max",
                                                   "spec.parameters[1].name"));
  EXPECT_THAT(text, HasSubstr("- spec.maxTrialCount: 32\n+ spec.maxTrialCount: nothing\n"));
  EXPECT_THAT(text, HasSubstr("apply refuses it"));
}

TEST(AwaitCondition, ReadsTheWordsAndTheComparisons) {
  using Kind = AwaitCondition::Kind;
  EXPECT_EQ(ParseAwaitCondition("Succeeded")->kind, Kind::kSucceeded);
  EXPECT_EQ(ParseAwaitCondition("deleted")->kind, Kind::kDeleted);
  const auto metric = ParseAwaitCondition("metric=loss<0.1");
  ASSERT_TRUE(metric.ok());
  EXPECT_EQ(metric->kind, Kind::kMetric);
  EXPECT_EQ(metric->term.field, "loss");
  EXPECT_EQ(ParseAwaitCondition("loss<0.1")->term.field, "loss");
  EXPECT_EQ(ParseAwaitCondition("best-acc>1")->kind, Kind::kMetric);
  for (const char* text : {"best<0.1", "best=<0.1"}) {
    const auto best = ParseAwaitCondition(text);
    ASSERT_TRUE(best.ok()) << text;
    EXPECT_EQ(best->kind, Kind::kBest) << text;
    EXPECT_EQ(best->term.field, "") << text;
    EXPECT_EQ(best->term.comparison, Comparison::kLess) << text;
  }
  EXPECT_EQ(ParseAwaitCondition("best=loss<0.1")->term.field, "loss");
  EXPECT_EQ(ParseAwaitCondition("best=0.5")->term.comparison, Comparison::kEqual);
  EXPECT_EQ(ParseAwaitCondition("best>=0.5")->term.comparison, Comparison::kAtLeast);
  for (const char* text : {"", "weather", "loss<", "a<1,b<2", "metric=", "best="}) {
    EXPECT_EQ(ParseAwaitCondition(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

}  // namespace
}  // namespace shirabe::view
