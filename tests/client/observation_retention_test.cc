// Which rows stay: never one that the record of a trial, its curve or an early stop follows from.
#include "client/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/rng.h"
#include "experiment/spec/objective_value.h"

namespace shirabe::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Rows = std::vector<db::StoredObservation>;

v1::ExperimentSpec SpecOf(bool early_stopping) {
  v1::ExperimentSpec spec;
  spec.mutable_objective()->set_objective_metric_name("loss");
  if (early_stopping) spec.mutable_early_stopping()->set_algorithm_name("medianstop");
  return spec;
}

Rows Curve(const std::string& metric, const std::vector<double>& values, int attempt = 1) {
  Rows rows;
  for (const double value : values) {
    rows.push_back({.trial = 1,
                    .attempt = attempt,
                    .metric = metric,
                    .step = std::ssize(rows) + 1,
                    .value = value});
  }
  return rows;
}

Rows Kept(const Rows& rows, const std::vector<db::ObservationKey>& removed) {
  Rows kept = rows;
  std::erase_if(kept, [&](const db::StoredObservation& row) {
    for (const auto& [attempt, step, metric] : removed) {
      if (attempt == row.attempt && step == row.step && metric == row.metric) return true;
    }
    return false;
  });
  return kept;
}

std::vector<int64_t> Steps(const Rows& rows) {
  std::vector<int64_t> steps;
  for (const auto& row : rows) steps.push_back(row.step);
  return steps;
}

Rows Thin(const Rows& rows, int64_t keep, bool early_stopping = false) {
  return Kept(rows, RowsToRemove(SpecOf(early_stopping), rows, keep));
}

TEST(RowsToRemove, KeepsFirstLastLeastGreatestAndEvenlySpacedOnes) {
  std::vector<double> values(100, 5.0);
  values[36] = 1;
  values[76] = 9;
  EXPECT_THAT(Steps(Thin(Curve("loss", values), 4)), ElementsAre(1, 37, 77, 100));
  EXPECT_THAT(Steps(Thin(Curve("loss", values), 7)), ElementsAre(1, 25, 37, 50, 75, 77, 100));
}

TEST(RowsToRemove, KeepsAllWhereThereAreFew) {
  EXPECT_THAT(RowsToRemove(SpecOf(false), {}, 4), IsEmpty());
  EXPECT_THAT(Thin(Curve("loss", {1, 2, 3, 4}), 4), SizeIs(4));
  EXPECT_THAT(Thin(Curve("loss", {3, 3, 3, 3, 3, 3, 3}), 4), SizeIs(testing::Le(4)));
}

TEST(RowsToRemove, DoingItAgainRemovesNoMore) {
  Rng rng(7);
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(rng.Uniform());
  for (const int64_t keep : {4, 5, 10, 100, 999}) {
    const Rows once = Thin(Curve("loss", values), keep);
    EXPECT_LE(std::ssize(once), keep);
    EXPECT_GT(std::ssize(once), keep / 2);
    EXPECT_EQ(Steps(Thin(once, keep)), Steps(once));
  }
}

// What a trial's record says of its metric follows from what stays, whatever the numbers are.
TEST(RowsToRemove, TheRecordOfTheTrialFollowsFromWhatStays) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    std::vector<double> values;
    for (int i = 0; i < 60; ++i) {
      const double kinds[] = {rng.Uniform(), std::floor(rng.Uniform() * 3), NAN, HUGE_VAL, -0.0};
      values.push_back(kinds[static_cast<int>(rng.Uniform() * 4.99)]);
    }
    const Rows rows = Curve("loss", values);
    v1::Observation all, few;
    for (const auto& row : rows) experiment::AddValue(all, row.metric, row.step, row.value);
    for (const auto& row : Thin(rows, 5)) {
      experiment::AddValue(few, row.metric, row.step, row.value);
    }
    for (v1::Observation* one : {&all, &few}) one->mutable_metrics(0)->clear_count();
    EXPECT_EQ(all.SerializeAsString(), few.SerializeAsString())
        << seed << all.DebugString() << few.DebugString();
  }
}

TEST(RowsToRemove, WhatAnEarlyStoppingRuleReadsStays) {
  Rows rows = Curve("loss", std::vector<double>(50, 1));
  const Rows others = Curve("accuracy", std::vector<double>(50, 1));
  rows.insert(rows.end(), others.begin(), others.end());
  std::map<std::string, int> kept;
  for (const auto& row : Thin(rows, 10, /*early_stopping=*/true)) ++kept[row.metric];
  EXPECT_EQ(kept["loss"], 50);
  EXPECT_LE(kept["accuracy"], 10);
  for (auto& row : rows) row.superseded = true;  // no rule reads those
  EXPECT_LE(std::ssize(Thin(rows, 10, true)), 20);
}

TEST(RowsToRemove, RowsThatDoNotCountAreCountedApart) {
  Rows rows = Curve("loss", std::vector<double>(30, 1));
  Rows resumed = Curve("loss", std::vector<double>(30, 2), /*attempt=*/2);
  for (size_t i = 10; i < 30; ++i) rows[i].superseded = true;
  rows.insert(rows.end(), resumed.begin() + 10, resumed.end());
  int counted = 0, superseded = 0;
  for (const auto& row : Thin(rows, 6)) ++(row.superseded ? superseded : counted);
  EXPECT_GE(counted, 4);
  EXPECT_LE(counted, 6);
  EXPECT_GE(superseded, 2);
  EXPECT_LE(superseded, 6);
}

}  // namespace
}  // namespace shirabe::client
