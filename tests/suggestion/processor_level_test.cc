#include "suggestion/processor_level.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/suggestion/analysis_data.h"

namespace shirabe::suggestion {
namespace {

using ::testing::AnyOf;

const char* const kModels[] = {"bayesianoptimization", "cmaes", "tpe", "multivariate-tpe"};

// Whether there is a copy of the algorithms that this processor can run.
bool HasCopy() { return std::string(ProcessorLevel()) == "x86-64-v3"; }

const Registry<AlgorithmInfo>& Algorithms() { return Registry<AlgorithmInfo>::Get(); }

// A valley with its end at (0.3, 0.7), after 12 trials that `info` has suggested.
Proposal Search(const AlgorithmInfo& info) {
  const Space space = Make({Double("x", {0, 1}), Double("y", {0, 1})});
  Problem problem{.space = space, .max_trials = 40};
  for (const SettingInfo& setting : info.settings) {
    if (!setting.default_value.empty()) {
      problem.settings.emplace_back(setting.name, setting.default_value);
    }
  }
  auto algorithm = info.create(problem);
  EXPECT_TRUE(algorithm.ok()) << algorithm.status();
  History history(space);
  Proposal proposal;
  for (int i = 0; i < 12; ++i) {
    proposal = *(*algorithm)->Propose(history, 1, Rng(5));
    const Suggestion& next = proposal.suggestions.at(0);
    const double x = next.point[0] - 0.3, y = next.point[1] - 0.7;
    history.Add(next.point, {.state = TrialState::kCompleted, .loss = x * x + 3 * y * y});
    history.SetLabels(i, next.labels);
    history.set_memo(proposal.memo);
  }
  return proposal;
}

TEST(ProcessorLevel, IsOneOfTwo) {
  EXPECT_THAT(ProcessorLevel(), AnyOf(testing::StrEq("baseline"), testing::StrEq("x86-64-v3")));
}

TEST(ProcessorLevel, TheCopyHasEveryAlgorithmOnceMore) {
  if (!HasCopy()) GTEST_SKIP() << "the algorithms are compiled for one kind of processor";
  for (const std::string& name : Algorithms().Names()) {
    const AlgorithmInfo& plain = *Algorithms().Find(name);
    const AlgorithmInfo& chosen = ForThisProcessor(plain);
    EXPECT_EQ(chosen.name, name);
    EXPECT_EQ(chosen.help, plain.help);
    EXPECT_NE(&chosen, &plain) << name;
  }
  for (const char* name : kModels) {
    const AlgorithmInfo& plain = *Algorithms().Find(name);
    EXPECT_NE(ForThisProcessor(plain).create, plain.create) << name;
  }
}

TEST(ProcessorLevel, WhatTheCopyDoesNotHaveStaysAsItIs) {
  const AlgorithmInfo elsewhere{.name = "in-another-process", .help = "", .create = nullptr};
  EXPECT_EQ(&ForThisProcessor(elsewhere), &elsewhere);
}

// Both round in their own way, and lead to the same place; each always in the same way.
TEST(ProcessorLevel, BothLevelsSearchAlikeAndRepeatThemselves) {
  for (const char* name : kModels) {
    const AlgorithmInfo& plain = *Algorithms().Find(name);
    const Proposal a = Search(plain), b = Search(ForThisProcessor(plain));
    EXPECT_EQ(Search(plain).suggestions[0].point, a.suggestions[0].point) << name;
    EXPECT_EQ(Search(ForThisProcessor(plain)).suggestions[0].point, b.suggestions[0].point) << name;
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(a.suggestions[0].point[i], b.suggestions[0].point[i], 0.05) << name;
    }
  }
}

TEST(ProcessorLevel, TheCopyHasTheAnalysesOnceMore) {
  const bool own = &AnalysesForThisProcessor() == &kAnalyses;
  EXPECT_EQ(own, !HasCopy());
  if (own) GTEST_SKIP() << "the analyses are compiled for one kind of processor";
  EXPECT_NE(AnalysesForThisProcessor().importances, kAnalyses.importances);
  EXPECT_NE(AnalysesForThisProcessor().ablation, kAnalyses.ablation);
  EXPECT_NE(AnalysesForThisProcessor().partial_dependence, kAnalyses.partial_dependence);
}

void ExpectAlike(const Estimate& a, const Estimate& b) {
  EXPECT_NEAR(a.value, b.value, 0.01);
  EXPECT_NEAR(a.low, b.low, 0.01);
  EXPECT_NEAR(a.high, b.high, 0.01);
}

TEST(ProcessorLevel, BothLevelsAnalyseAlike) {
  const auto loss = [](const Point& x) { return 3 * x[0] + std::sin(6 * x[1]) + x[0] * x[2]; };
  const History history = analysis::RandomHistory(analysis::Reals(3), 60, loss);
  const Analyses &plain = kAnalyses, &chosen = AnalysesForThisProcessor();
  const auto a = plain.importances(history), b = chosen.importances(history);
  ASSERT_TRUE(a.has_model() && b.has_model());
  ASSERT_EQ(b.answer.size(), 3u);
  for (size_t j = 0; j < 3; ++j) {
    ExpectAlike(a.answer[j].index.total, b.answer[j].index.total);
    ExpectAlike(a.answer[j].index.first, b.answer[j].index.first);
    EXPECT_EQ(a.answer[j].verdict, b.answer[j].verdict);
  }
  const Point from = {0.9, 0.9, 0.9}, to = {0.1, 0.1, 0.1};
  const auto way = plain.ablation(history, from, to), same = chosen.ablation(history, from, to);
  ASSERT_EQ(same.answer.steps.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(way.answer.steps[i].axis, same.answer.steps[i].axis);
    ExpectAlike(way.answer.steps[i].loss, same.answer.steps[i].loss);
  }
  const auto mean = plain.partial_dependence(history, {1});
  const auto also = chosen.partial_dependence(history, {1});
  EXPECT_EQ(mean.answer.axes[0].coordinates, also.answer.axes[0].coordinates);
  ASSERT_EQ(also.answer.losses.size(), mean.answer.losses.size());
  ExpectAlike(mean.answer.losses[5], also.answer.losses[5]);
}

TEST(ProcessorLevel, BothLevelsSayWhenTrialsAreTooFew) {
  const History none(analysis::Reals(2));
  for (const Analyses* analyses : {&kAnalyses, &AnalysesForThisProcessor()}) {
    const auto found = analyses->importances(none);
    EXPECT_EQ(found.basis.too_few, "no trial has a result yet");
    EXPECT_TRUE(found.answer.empty() && !found.has_model());
  }
}

}  // namespace
}  // namespace shirabe::suggestion
