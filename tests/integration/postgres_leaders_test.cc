// Two controllers on one PostgreSQL database (F4): the owner is stopped for longer than its lease,
// another takes over, and what the first still writes when it goes on is refused.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <map>

#include "absl/strings/str_replace.h"
#include "experiment/experiment_controller.h"
#include "experiment/submission.h"
#include "tests/db/postgres_server.h"
#include "tests/integration/small_experiment.h"
#include "tests/support/eventually.h"

namespace shirabe::experiment {
namespace {

const ExperimentKey kPostgresLeadersKey{"default", "led"};

constexpr char kPostgresLeadersTrial[] = R"(
mkdir "HOME/marks/$SHIRABE_TRIAL" || echo "$SHIRABE_TRIAL overlaps" >> HOME/overlaps
for i in 1 2 3; do echo "loss=0.$i"; sleep 0.1; done
rmdir "HOME/marks/$SHIRABE_TRIAL"
)";

StatusOr<std::unique_ptr<Controller>> Lead(db::Store& store, const std::string& home) {
  ControllerOptions options{.store = &store, .clock = RealClock()};
  options.executor_options = {.home = home, .clock = RealClock()};
  return Controller::Create(options);
}

class PostgresLeaders : public testing::Test {
 protected:
  void SetUp() override {
    if (!db::PostgresServer::IsInstalled()) {
      GTEST_SKIP() << "there is no PostgreSQL here (package postgresql-15)";
    }
    server_ = std::make_unique<db::PostgresServer>();
    address_ = server_->Address(server_->NewDatabase());
    char name[] = "/tmp/shirabe-leaders-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    home_ = name;
    ASSERT_TRUE(MakeDirs(home_ + "/marks").ok());
    const std::string script = absl::StrReplaceAll(kPostgresLeadersTrial, {{"HOME", home_}});
    ASSERT_TRUE(WriteFileAtomic(home_ + "/trial.sh", script).ok());
    const v1::Experiment experiment = Read({.name = kPostgresLeadersKey.name,
                                            .parallel = 2,
                                            .trials = 40,
                                            .script = home_ + "/trial.sh"});
    const auto store = OpenIt();
    ASSERT_TRUE(Submit(*store, *RealClock(), experiment).ok());
  }
  void TearDown() override {
    if (!home_.empty()) {
      EXPECT_TRUE(RemoveFolder(home_));
    }
  }

  std::unique_ptr<db::Store> OpenIt() const {
    auto store = db::OpenPostgres({.address = address_});
    CHECK(store.ok());
    return *std::move(store);
  }
  // In a process of its own; 0 if it took the experiment to its end, 3 if it lost the lease.
  pid_t Fork() const {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const auto store = OpenIt();
    const auto controller = Lead(*store, home_);
    if (!controller.ok() || !(*controller)->Own(kPostgresLeadersKey).ok()) _exit(2);
    const Status ended = (*controller)->Await(kPostgresLeadersKey, absl::Minutes(2));
    _exit(ended.ok() ? 0 : absl::IsAborted(ended) ? 3 : 4);
  }

  std::unique_ptr<db::PostgresServer> server_;
  std::string address_;
  std::string home_;
};

bool IsOver(v1::TrialPhase phase) {
  return phase != v1::TRIAL_PENDING && phase != v1::TRIAL_RUNNING;
}

TEST_F(PostgresLeaders, AStoppedOwnerIsReplacedAndRefused) {
  const pid_t first = Fork();
  const auto store = OpenIt();
  const absl::Duration deadline = RealClock()->Monotonic() + absl::Minutes(2);
  const auto over = [&] {
    std::map<int64_t, v1::TrialPhase> trials;
    const auto rows = store->ListTrials({.experiment = kPostgresLeadersKey});
    for (const auto& row : *rows) {
      if (IsOver(row.record.phase())) trials[row.record.number()] = row.record.phase();
    }
    return trials;
  };
  while (over().size() < 3 && RealClock()->Monotonic() < deadline) {
    store->AwaitChange(*store->Revision(), absl::Seconds(1)).IgnoreError();
  }
  ASSERT_EQ(kill(first, SIGSTOP), 0);
  const auto before = over();
  ASSERT_GE(before.size(), 3u);
  ASSERT_LT(before.size(), 40u) << "there is nothing left to take over";

  // The stopped owner's process is alive, so that only the time takes its lease away.
  const auto second = Lead(*store, home_);
  ASSERT_TRUE(second.ok()) << second.status();
  Status owned = (*second)->Own(kPostgresLeadersKey);
  EXPECT_TRUE(absl::IsAlreadyExists(owned)) << owned;
  while (!owned.ok() && RealClock()->Monotonic() < deadline) {
    poll(nullptr, 0, 200);
    owned = (*second)->Own(kPostgresLeadersKey);
  }
  ASSERT_TRUE(owned.ok()) << owned;
  const int64_t epoch = store->GetLease(kPostgresLeadersKey)->epoch();
  ASSERT_EQ(kill(first, SIGCONT), 0);
  int status = 0;
  ASSERT_EQ(waitpid(first, &status, 0), first);
  EXPECT_EQ(WEXITSTATUS(status), 3) << "the first must learn that it lost the lease";
  const Status ended = (*second)->Await(kPostgresLeadersKey, absl::Minutes(2));
  EXPECT_TRUE(ended.ok()) << ended;

  EXPECT_EQ(store->GetLease(kPostgresLeadersKey)->epoch(), epoch);
  const auto after = over();
  EXPECT_EQ(after.size(), 40u);
  for (const auto& [number, phase] : before) {
    EXPECT_EQ(after.at(number), phase) << "a terminal phase changed";
  }
  for (const auto& [number, phase] : after) EXPECT_EQ(phase, v1::TRIAL_SUCCEEDED) << number;
  EXPECT_FALSE(std::filesystem::exists(home_ + "/overlaps")) << "two ran one trial at once";
}

}  // namespace
}  // namespace shirabe::experiment
