// Real programs on machines that are taken away: ten reclaims and more in a few seconds, without a
// notice, with one that is heeded and with one that is not. Every trial ends as it would have
// undisturbed, nothing fails, and the ledger is right to the cent.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "experiment/submission.h"
#include "tests/integration/small_experiment.h"
#include "tests/support/eventually.h"

namespace shirabe::experiment {
namespace {

constexpr double kPrice = 36;  // an hour: a cent a second
constexpr int kReclaims = 50;

// Ever further apart: a trial that takes long to start on a busy machine runs for a while, too.
v1::NodePools Spot(int slots, double notice) {
  v1::NodePools pools;
  v1::NodePool& pool = *pools.add_pools();
  pool.set_name("spot");
  pool.set_capacity(v1::SPOT);
  pool.set_price_per_hour(kPrice);
  pool.set_slots(slots);
  pool.mutable_reclaim()->set_notice_seconds(notice);
  double at = 0, gap = 0.2;
  for (int i = 1; i <= kReclaims; ++i, gap *= 1.03) pool.mutable_reclaim()->add_times(at += gap);
  return pools;
}

// How every trial ended: by number.
std::vector<std::string> Results(db::Store& store) {
  std::vector<std::string> results;
  const auto trials = store.ListTrials({.experiment = kSmall});
  for (const auto& [trial, revision] : *trials) {
    results.push_back(v1::TrialPhase_Name(trial.phase()) + " " + std::to_string(trial.objective()) +
                      " at " + std::to_string(trial.objective_step()) + " " +
                      trial.assignments(0).ShortDebugString());
  }
  return results;
}

// I7, and what the steps add up to.
void ExpectLedgerAddsUp(db::Store& store) {
  double cost = 0;
  const auto trials = store.ListTrials({.experiment = kSmall});
  for (const auto& [trial, revision] : *trials) {
    double sum = 0;
    int64_t gained = 0;
    const auto attempts = store.ListAttempts({.experiment = kSmall, .trial = trial.number()});
    for (const auto& [attempt, seen] : *attempts) {
      ASSERT_EQ(attempt.placements_size(), 1) << attempt.ShortDebugString();
      const double price = attempt.placements(0).price_per_hour();
      EXPECT_NEAR(attempt.cost(), attempt.seconds() * price / 3600, 1e-9);
      EXPECT_GT(attempt.seconds(), 0);
      sum += attempt.cost();
      gained += attempt.steps_gained();
    }
    EXPECT_NEAR(trial.cost(), sum, 1e-9);
    EXPECT_EQ(gained, trial.reached_step());
    cost += trial.cost();
  }
  EXPECT_NEAR(store.GetExperiment(kSmall)->record.status().shirabe().cost(), cost, 1e-9);
}

// Every step counts once, from 1 to the last, whichever attempt made it.
void ExpectEveryStepOnce(db::Store& store, int steps) {
  const auto trials = store.ListTrials({.experiment = kSmall});
  for (const auto& [trial, revision] : *trials) {
    const auto rows = store.ListObservations({.trial = {kSmall, trial.number()}});
    std::set<int64_t> counted;
    for (const db::StoredObservation& row : *rows) {
      EXPECT_TRUE(counted.insert(row.step).second) << "step " << row.step << " counts twice";
    }
    EXPECT_EQ(static_cast<int>(counted.size()), steps);
  }
}

struct Case {
  const char* name;
  int parallel;
  double notice;
  const char* first_line;  // of the trainer
};

class Preemption : public testing::TestWithParam<Case> {};

TEST_P(Preemption, CostsSecondsAndNeverATrial) {
  const Case& at = GetParam();
  SmallExperiment small{.trials = 4, .parallel = at.parallel, .steps = 32, .seconds = "0.05"};
  if (at.parallel == 1) small.trials = 2;
  const std::string calm = MakeHome(small);
  ASSERT_TRUE(RunSmall(calm, {}).ok());
  const std::vector<std::string> expected = Results(*OpenHome(calm));
  EXPECT_TRUE(RemoveFolder(calm));

  small.first_line = at.first_line;
  const std::string home = MakeHome(small);
  ASSERT_TRUE(RunSmall(home, {.pools = Spot(at.parallel, at.notice)}).ok());
  const auto store = OpenHome(home);
  EXPECT_EQ(Results(*store), expected);
  const v1::ExperimentStatus status = store->GetExperiment(kSmall)->record.status();
  EXPECT_EQ(status.trials_failed(), 0);
  EXPECT_GE(status.shirabe().preemptions(), 10) << status.ShortDebugString();
  ExpectLedgerAddsUp(*store);
  ExpectEveryStepOnce(*store, small.steps);
  EXPECT_TRUE(RemoveFolder(home));
}

INSTANTIATE_TEST_SUITE_P(Notices, Preemption,
                         testing::Values(Case{"NoNotice", 2, 0, ":"},
                                         Case{"NoNoticeOneAtATime", 1, 0, ":"},
                                         Case{"Heeded", 2, 0.2, "trap 'exit 75' TERM"},
                                         Case{"HeededWithExit0", 2, 0.2, "trap 'exit 0' TERM"},
                                         Case{"HeededWithExit143", 2, 0.2, ":"},
                                         Case{"Ignored", 2, 0.1, "trap '' TERM"}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace shirabe::experiment
