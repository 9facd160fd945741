// F1, with real processes and SQLite: a controller that dies between any two effects of its passes,
// at each of them in turn, loses nothing and runs nothing twice. The programs go on meanwhile.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"
#include "tests/integration/small_experiment.h"
#include "tests/support/eventually.h"

extern char** environ;

namespace shirabe::experiment {
namespace {

constexpr int kDied = 77;       // at the step
constexpr int kMaxSteps = 400;  // a run has about a hundred

// Its exit code.
int RunChild(const std::string& home, int step) {
  setenv(kCrashHome, home.c_str(), 1);
  setenv(kCrashStep, std::to_string(step).c_str(), 1);
  char self[] = "/proc/self/exe";
  char* argv[] = {self, nullptr};
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, self, nullptr, nullptr, argv, environ), 0);
  int status = 0;
  waitpid(pid, &status, 0);
  unsetenv(kCrashHome);
  unsetenv(kCrashStep);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// All that the store says of the experiment but times, tokens and process ids.
std::vector<std::string> StateOf(db::Store& store) {
  std::vector<std::string> lines;
  const v1::Experiment experiment = store.GetExperiment(kSmall)->record;
  lines.push_back(CurrentCondition(experiment).reason());
  lines.push_back("best " + experiment.status().current_optimal_trial().best_trial_name());
  const auto trials = store.ListTrials({.experiment = kSmall});
  for (const auto& [trial, revision] : *trials) {
    lines.push_back(v1::TrialPhase_Name(trial.phase()) + " " + std::to_string(trial.objective()) +
                    " " + trial.assignments(0).ShortDebugString());
    const auto rows =
        store.ListObservations({.trial = {kSmall, trial.number()}, .include_superseded = true});
    for (const db::StoredObservation& row : *rows) {
      lines.push_back(std::to_string(row.attempt) + " " + std::to_string(row.step) + " " +
                      std::to_string(row.value) + (row.superseded ? " superseded" : ""));
    }
    const auto checkpoints = store.ListCheckpoints({kSmall, trial.number()});
    for (const auto& [checkpoint, seen] : *checkpoints) {
      lines.push_back("checkpoint " + std::to_string(checkpoint.step()) + " " + checkpoint.gone());
    }
  }
  const auto attempts = store.ListAttempts({.experiment = kSmall});
  for (const auto& [attempt, revision] : *attempts) {
    lines.push_back(v1::Cause_Name(attempt.cause()) + " gained " +
                    std::to_string(attempt.steps_gained()) + " redone " +
                    std::to_string(attempt.steps_redone()));
  }
  return lines;
}

TEST(CrashPoints, EveryOneEndsInTheSameState) {
  std::vector<std::string> expected;
  {
    const std::string home = MakeHome({});
    ASSERT_TRUE(RunSmall(home, {}).ok());
    expected = StateOf(*OpenHome(home));
    EXPECT_TRUE(RemoveFolder(home));
  }
  int step = 1;
  for (; step < kMaxSteps; ++step) {
    const std::string home = MakeHome({});
    const int code = RunChild(home, step);
    if (code == kDied) {
      EXPECT_TRUE(RunSmall(home, {}).ok());
    }
    EXPECT_TRUE(code == kDied || code == 0) << "the controller failed, at or before step " << step;
    EXPECT_EQ(StateOf(*OpenHome(home)), expected) << "after a crash at step " << step;
    const std::vector<std::string> starts =
        absl::StrSplit(ReadFile(home + "/marks/starts").value_or(""), '\n', absl::SkipEmpty());
    EXPECT_EQ(starts.size(), 2u) << "a program was started twice, after a crash at step " << step;
    EXPECT_TRUE(RemoveFolder(home));
    if (code == 0 || testing::Test::HasFailure()) break;  // it ended before that step
  }
  EXPECT_GT(step, 20) << "at_step is not called";
}

}  // namespace

int RunCrashChild(const std::string& home) {
  const char* text = std::getenv(kCrashStep);
  const int die_at = text == nullptr ? 0 : std::atoi(text);
  int step = 0;
  const auto count = [&] {
    if (++step == die_at) _exit(kDied);
  };
  return RunSmall(home, {.at_step = count}).ok() ? 0 : 1;
}

}  // namespace shirabe::experiment
