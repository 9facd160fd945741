// Early stopping with real processes: a trial that the rule gives up on is asked to end, by file
// and signal, and ends once, whatever else happens to it at that moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/file_io.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"
#include "tests/integration/small_experiment.h"
#include "tests/support/eventually.h"

namespace shirabe::experiment {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Trials would take a minute; the rule stops each once its loss, parameter / step, is below a
// bound.
SmallExperiment Endless() {
  return {
      .trials = 6,
      .parallel = 3,
      .steps = 3000,
      .first_line = R"(trap 'cat "$SHIRABE_CONTROL_FILE" > "$MARKS/$SHIRABE_TRIAL"; exit 75' TERM)",
      .early_stopping =
          "{algorithmName: threshold, "
          "algorithmSettings: [{name: lower, value: 0.04}]}",
      .maximize = true};  // below the bound is bad then, not beyond what makes sense
}

std::set<int64_t> TrialsWithEvent(db::Store& store, const std::string& reason) {
  std::set<int64_t> trials;
  const auto events = store.ListEvents({.experiment = kSmall});
  for (const v1::Event& event : *events) {
    if (event.reason() != reason) continue;
    EXPECT_TRUE(trials.insert(event.trial()).second) << "told twice";
  }
  return trials;
}

void ExpectStoppedEarly(db::Store& store, const v1::Trial& trial) {
  EXPECT_EQ(trial.phase(), v1::TRIAL_EARLY_STOPPED) << trial.ShortDebugString();
  EXPECT_EQ(trial.reason(), "TrialEarlyStopped");
  EXPECT_THAT(trial.message(), StartsWith("at step "));
  EXPECT_THAT(trial.message(), HasSubstr("< lower bound 0.04"));
  EXPECT_TRUE(trial.has_objective());
  const auto attempts = store.ListAttempts({.experiment = kSmall, .trial = trial.number()});
  const v1::Attempt& last = attempts->back().record;
  EXPECT_EQ(last.cause(), v1::EARLY_STOPPED);
  EXPECT_EQ(last.stop().reason(), trial.message());
  for (const auto& [attempt, revision] : *attempts) {
    EXPECT_EQ(attempt.state(), v1::ATTEMPT_CLOSED);
    if (attempt.number() == last.number()) continue;
    EXPECT_EQ(attempt.cause(), v1::PREEMPTED_SPOT);
  }
}

void ExpectAllStoppedEarly(const std::string& home) {
  const auto store = OpenHome(home);
  const v1::Experiment experiment = store->GetExperiment(kSmall)->record;
  EXPECT_EQ(CurrentCondition(experiment).reason(), "ExperimentMaxTrialsReached");
  EXPECT_EQ(experiment.status().trials_early_stopped(), 6);
  EXPECT_TRUE(experiment.status().current_optimal_trial().has_objective());
  const auto trials = store->ListTrials({.experiment = kSmall});
  ASSERT_EQ(trials->size(), 6u);
  for (const auto& [trial, revision] : *trials) ExpectStoppedEarly(*store, trial);
  EXPECT_EQ(TrialsWithEvent(*store, "TrialEarlyStopped").size(), 6u);
}

TEST(EarlyStop, EndsTrialsGracefullyAndSaysWhy) {
  const std::string home = MakeHome(Endless());
  ASSERT_TRUE(RunSmall(home, {}).ok());
  ExpectAllStoppedEarly(home);
  for (int i = 1; i <= 6; ++i) {
    const auto request = ReadFile(home + "/marks/small-" + std::to_string(i));
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_THAT(*request, HasSubstr("\"early-stop\""));
  }
  EXPECT_TRUE(RemoveFolder(home));
}

TEST(EarlyStop, AValueThatIsTooGoodIsNoResult) {
  SmallExperiment small = Endless();
  small.maximize = false;
  const std::string home = MakeHome(small);
  ASSERT_TRUE(RunSmall(home, {}).ok());
  const v1::Experiment experiment = OpenHome(home)->GetExperiment(kSmall)->record;
  EXPECT_EQ(experiment.status().trials_early_stopped(), 6);
  EXPECT_EQ(experiment.status().shirabe().trials_infeasible(), 6);
  EXPECT_FALSE(experiment.status().current_optimal_trial().has_objective());
  EXPECT_TRUE(RemoveFolder(home));
}

// F25: machines go away all the while, also between the decision and the program's end.
TEST(EarlyStop, RacesWithPreemptionToOneEnd) {
  const std::string home = MakeHome(Endless());
  RunOptions options;
  v1::NodePool& pool = *options.pools.add_pools();
  pool.set_name("spot");
  pool.set_capacity(v1::SPOT);
  pool.set_slots(3);
  for (int i = 1; i <= 20; ++i) pool.mutable_reclaim()->add_times(0.15 * i);
  ASSERT_TRUE(RunSmall(home, options).ok());
  ExpectAllStoppedEarly(home);
  EXPECT_TRUE(RemoveFolder(home));
}

}  // namespace
}  // namespace shirabe::experiment
