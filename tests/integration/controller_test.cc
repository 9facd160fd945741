// The controller with the real store and real processes, killed at any moment.
#include "experiment/experiment_controller.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "base/rng.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"
#include "tests/integration/controller_child.h"
#include "tests/integration/small_experiment.h"
#include "tests/support/eventually.h"

extern char** environ;

namespace shirabe::experiment {
namespace {

// Each trial notes its start, complains if another process runs the same trial, reports five
// values, and ends.
constexpr char kTrial[] = R"(
mkdir "$MARKS/$SHIRABE_TRIAL" || echo "$SHIRABE_TRIAL overlaps" >> "$MARKS/overlaps"
echo "$SHIRABE_TRIAL" >> "$MARKS/starts"
for i in 1 2 3 4 5; do echo "loss=0.$i"; sleep 0.03; done
rmdir "$MARKS/$SHIRABE_TRIAL"
)";

const ExperimentKey kKey{"default", "killed"};

StatusOr<std::unique_ptr<Controller>> MakeController(db::Store& store, const std::string& home) {
  ControllerOptions options{.store = &store, .clock = RealClock()};
  options.executor_options = {.home = home, .clock = RealClock()};
  return Controller::Create(options);
}

class KilledController : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/shirabe-controller-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    home_ = name;
    ASSERT_TRUE(MakeDirs(home_ + "/marks").ok());
    ASSERT_TRUE(WriteFileAtomic(home_ + "/trial.sh", kTrial).ok());
    const v1::Experiment experiment = Read({.name = kKey.name,
                                            .parallel = 3,
                                            .trials = 20,
                                            .script = home_ + "/trial.sh",
                                            .marks = home_ + "/marks"});
    store_ = OpenHome(home_);
    const auto submitted = Submit(*store_, *RealClock(), experiment);
    ASSERT_TRUE(submitted.ok()) << submitted.status();
  }
  void TearDown() override { EXPECT_TRUE(RemoveFolder(home_)); }

  pid_t SpawnChild() {
    setenv(kChildVariable, home_.c_str(), 1);
    char self[] = "/proc/self/exe";
    char* argv[] = {self, nullptr};
    pid_t pid = -1;
    EXPECT_EQ(posix_spawn(&pid, self, nullptr, nullptr, argv, environ), 0);
    unsetenv(kChildVariable);
    return pid;
  }

  // Runs the child; kills it after a while if `kill_it`. Whether it came to its own end.
  bool RunChild(bool kill_it, useconds_t after_us) {
    const pid_t pid = SpawnChild();
    int status = 0;
    if (kill_it) {
      usleep(after_us);
      if (waitpid(pid, &status, WNOHANG) == 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
      }
    } else {
      waitpid(pid, &status, 0);
    }
    if (WIFSIGNALED(status)) return false;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return true;
  }

  std::vector<std::string> Lines(const std::string& file) {
    return absl::StrSplit(ReadFile(home_ + "/marks/" + file).value_or(""), '\n', absl::SkipEmpty());
  }

  std::string home_;
  std::unique_ptr<db::Store> store_;
};

TEST_F(KilledController, LosesNothingAndRunsNothingTwice) {
  Rng rng(7);
  constexpr int kKills = 12;
  bool over = false;
  for (int i = 0; i < kKills && !over; ++i) {
    over = RunChild(true, static_cast<useconds_t>(20'000 + rng.Below(250'000)));
  }
  if (!over) {
    ASSERT_TRUE(RunChild(false, 0));
  }
  EXPECT_EQ(Lines("overlaps"), std::vector<std::string>{});
  const auto starts = Lines("starts");
  EXPECT_EQ(std::set<std::string>(starts.begin(), starts.end()).size(), starts.size())
      << "a trial ran twice although its process was never disturbed";
  const auto trials = store_->ListTrials({.experiment = kKey});
  ASSERT_EQ(trials->size(), 20u);
  for (const auto& trial : *trials) {
    EXPECT_EQ(trial.record.phase(), v1::TRIAL_SUCCEEDED) << trial.record.ShortDebugString();
    EXPECT_EQ(trial.record.attempts(), 1);
    EXPECT_EQ(trial.record.objective(), 0.1);
    const auto rows = store_->ListObservations({.trial = {kKey, trial.record.number()}});
    ASSERT_EQ(rows->size(), 5u) << trial.record.ShortDebugString();
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ((*rows)[i].step, i + 1);
      EXPECT_DOUBLE_EQ((*rows)[i].value, 0.1 * (i + 1));
    }
  }
  EXPECT_TRUE(IsEnded(store_->GetExperiment(kKey)->record));
}

TEST_F(KilledController, ASecondOwnerIsToldWhoTheFirstIs) {
  const auto lease = store_->AcquireLease({.experiment = kKey,
                                           .holder = "elsewhere:42:1:boot",
                                           .now = RealClock()->Now(),
                                           .ttl = absl::Minutes(1)});
  ASSERT_TRUE(lease.ok()) << lease.status();
  auto controller = MakeController(*store_, home_);
  ASSERT_TRUE(controller.ok()) << controller.status();
  const Status owned = (*controller)->Own(kKey);
  EXPECT_TRUE(absl::IsAlreadyExists(owned)) << owned;
  EXPECT_NE(Message(owned).find("elsewhere:42"), std::string::npos) << owned;
}

TEST_F(KilledController, SuspendedItStopsItsTrialsAndGoesOnLater) {
  {
    auto controller = MakeController(*store_, home_);
    ASSERT_TRUE(controller.ok()) << controller.status();
    ASSERT_TRUE((*controller)->Own(kKey).ok());
    EXPECT_TRUE(absl::IsDeadlineExceeded((*controller)->Await(kKey, absl::Milliseconds(150))));
    (*controller)->Suspend(kKey, false);
    EXPECT_TRUE((*controller)->Await(kKey, absl::Seconds(30)).ok());
    const auto open = store_->ListAttempts({.experiment = kKey, .open_only = true});
    EXPECT_TRUE(open->empty());
  }
  std::filesystem::remove_all(home_ + "/marks");  // a stopped trial leaves its mark behind
  ASSERT_TRUE(MakeDirs(home_ + "/marks").ok());
  auto controller = MakeController(*store_, home_);
  ASSERT_TRUE((*controller)->Own(kKey).ok());
  EXPECT_TRUE((*controller)->Await(kKey, absl::Minutes(1)).ok());
  EXPECT_EQ(store_->GetExperiment(kKey)->record.status().trials_succeeded(), 20);
}

// Another process's wish is carried out within a second.
TEST_F(KilledController, AnIntentToDeleteLeavesNothing) {
  auto controller = MakeController(*store_, home_);
  ASSERT_TRUE((*controller)->Own(kKey).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded((*controller)->Await(kKey, absl::Milliseconds(100))));
  v1::Intent intent;
  intent.set_verb(v1::Intent::DELETE);
  ASSERT_TRUE(Send(*store_, *RealClock(), kKey, intent).ok());
  EXPECT_TRUE((*controller)->Await(kKey, absl::Seconds(20)).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment(kKey).status()));
  EXPECT_FALSE(std::filesystem::exists(home_ + "/trials/default/killed"));
}

// An owner on another machine takes the experiment: it cannot reach programs here, and records
// their attempts as lost.
class HandedOver : public KilledController {
 protected:
  void SetUp() override {
    KilledController::SetUp();
    ASSERT_TRUE(
        WriteFileAtomic(home_ + "/trial.sh", "echo $$ >> \"$MARKS/pids\"; exec sleep 300").ok());
  }

  void TearDown() override {
    for (const std::string& pid : Lines("pids")) kill(std::stoi(pid), SIGKILL);
    KilledController::TearDown();
  }

  bool Started() {
    return Eventually([&] { return Lines("pids").size() == 3; });
  }
  int Running() {
    int running = 0;
    for (const std::string& pid : Lines("pids")) running += kill(std::stoi(pid), 0) == 0 ? 1 : 0;
    return running;
  }

  // Ends all attempts but the last.
  void TakeOver() {
    const auto lease = store_->AcquireLease({.experiment = kKey,
                                             .holder = "elsewhere:42:1:boot",
                                             .now = RealClock()->Now() + absl::Minutes(1),
                                             .ttl = absl::Hours(1)});
    ASSERT_TRUE(lease.ok()) << lease.status();
    auto open = *store_->ListAttempts({.experiment = kKey, .open_only = true});
    ASSERT_EQ(open.size(), 3u);
    open.pop_back();
    db::Batch batch{.experiment = kKey, .epoch = lease->epoch()};
    for (auto& [attempt, revision] : open) {
      attempt.set_state(v1::ATTEMPT_CLOSED);
      attempt.set_cause(v1::INFRASTRUCTURE);
      batch.attempts.push_back({attempt, revision});
    }
    const auto committed = store_->Commit(batch);
    ASSERT_TRUE(committed.ok()) << committed.status();
  }
};

TEST_F(HandedOver, TheFormerOwnerStopsProgramsWhoseAttemptsWereEnded) {
  auto controller = MakeController(*store_, home_);
  ASSERT_TRUE((*controller)->Own(kKey).ok());
  ASSERT_TRUE(Started());
  TakeOver();
  EXPECT_TRUE(Eventually([&] { return Running() == 1; })) << Running();
  EXPECT_TRUE(absl::IsAborted((*controller)->Await(kKey, absl::Seconds(1))));
  // And then it is deleted.
  const auto lease = store_->GetLease(kKey);
  ASSERT_TRUE(
      store_->Commit({.experiment = kKey, .epoch = lease->epoch(), .delete_experiment = true})
          .ok());
  EXPECT_TRUE(Eventually([&] { return Running() == 0; })) << Running();
}

TEST_F(HandedOver, ADeadOwnersProgramsAreStoppedByTheNextControllerOfItsHome) {
  const pid_t child = SpawnChild();
  EXPECT_TRUE(Started());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  TakeOver();
  const auto controller = MakeController(*store_, home_);
  EXPECT_TRUE(Eventually([&] { return Running() == 1; })) << Running();  // that is to be adopted
}

}  // namespace

int RunController(const std::string& home) {
  auto store = OpenHome(home);
  auto controller = MakeController(*store, home);
  if (!controller.ok()) return 2;
  if (const Status owned = (*controller)->Own(kKey); !owned.ok()) {
    std::fprintf(stderr, "%s\n", owned.ToString().c_str());
    return 3;
  }
  return (*controller)->Await(kKey, absl::Minutes(2)).ok() ? 0 : 4;
}

}  // namespace shirabe::experiment
