// The PostgreSQL store in a hostile world: the server crashes and comes back, connections break at
// the worst moment, the disk is full, many processes write. Nothing acknowledged may be lost, and
// nothing may be written twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "absl/strings/str_replace.h"
#include "base/open_beneath.h"
#include "base/rng.h"
#include "db/maintenance.h"
#include "db/postgres/postgres_store.h"
#include "tests/db/postgres_server.h"
#include "tests/integration/postgres_proxy.h"

namespace shirabe::db {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const ExperimentKey kPostgresFaultsKey{"default", "faults"};
constexpr absl::Duration kLong = absl::Seconds(60);

Batch Creation() {
  Batch batch{.experiment = kPostgresFaultsKey};
  batch.put.emplace();
  batch.put->record.mutable_metadata()->set_namespace_(kPostgresFaultsKey.ns);
  batch.put->record.mutable_metadata()->set_name(kPostgresFaultsKey.name);
  batch.trials.emplace_back();
  batch.trials[0].record.set_namespace_(kPostgresFaultsKey.ns);
  batch.trials[0].record.set_experiment(kPostgresFaultsKey.name);
  batch.trials[0].record.set_number(1);
  return batch;
}

Batch Say(const std::string& message) {
  Batch batch{.experiment = kPostgresFaultsKey};
  batch.events.resize(1);
  batch.events[0].set_namespace_(kPostgresFaultsKey.ns);
  batch.events[0].set_experiment(kPostgresFaultsKey.name);
  batch.events[0].set_message(message);
  return batch;
}

// How often each message is there.
std::map<std::string, int> Said(Store& store) {
  std::map<std::string, int> said;
  const auto events = store.ListEvents({.experiment = kPostgresFaultsKey});
  EXPECT_TRUE(events.ok()) << events.status();
  for (const v1::Event& event : *events) ++said[event.message()];
  return said;
}

bool WaitUntil(const std::function<bool()>& condition) {
  const absl::Duration deadline = RealClock()->Monotonic() + kLong;
  while (!condition()) {
    if (RealClock()->Monotonic() > deadline) return false;
    poll(nullptr, 0, 2);
  }
  return true;
}

class PostgresFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!PostgresServer::IsInstalled()) {
      GTEST_SKIP() << "there is no PostgreSQL here (package postgresql-15)";
    }
  }
  // Of a server of this test's own, since it will suffer.
  void StartServer(const std::string& data = "") {
    server_ = std::make_unique<PostgresServer>(std::vector<std::string>{}, data);
    database_ = server_->NewDatabase();
  }
  std::unique_ptr<Store> MustOpen(const std::string& address, absl::Duration doubt = kLong) {
    auto store = OpenPostgres({.address = address, .resolve_timeout = doubt});
    EXPECT_TRUE(store.ok()) << store.status();
    CHECK(store.ok());
    return *std::move(store);
  }
  std::unique_ptr<Store> MustOpen() { return MustOpen(server_->Address(database_)); }

  std::unique_ptr<PostgresServer> server_;
  std::string database_;
};

TEST_F(PostgresFaults, TheServerCrashesInTheMiddleOfCommits) {
  StartServer();
  const auto store = MustOpen();
  ASSERT_TRUE(store->Commit(Creation()).ok());
  std::atomic<bool> stop = false;
  std::atomic<int> count = 0;
  std::mutex mutex;
  std::map<std::string, Status> answers;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; !stop; ++i) {
        const std::string message = absl::StrCat(thread, ".", i);
        const Status status = store->Commit(Say(message)).status();
        EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
        count += status.ok() ? 1 : 0;
        std::lock_guard lock(mutex);
        answers[message] = status;
      }
    });
  }
  for (const int signal : {SIGQUIT, SIGINT, SIGQUIT, SIGQUIT}) {
    const int before = count;
    EXPECT_TRUE(WaitUntil([&] { return count > before + 40; })) << "commits do not go on";
    server_->Stop(signal);
    server_->Start();
  }
  const int before = count;
  EXPECT_TRUE(WaitUntil([&] { return count > before + 40; }));
  stop = true;
  for (std::thread& thread : threads) thread.join();

  const auto said = Said(*store);
  for (const auto& [message, status] : answers) {
    const auto found = said.find(message);
    const int times = found == said.end() ? 0 : found->second;
    EXPECT_LE(times, 1) << message << " was written twice";
    EXPECT_TRUE(times == 1 || !status.ok()) << message << " was acknowledged and is lost";
  }
  EXPECT_GT(answers.size(), 200u);
}

// A database that is renamed, dropped or not there after a failover; and one that no longer lets
// its user in. That a record does not exist, or that a caller may not, must never be read out of
// it: the files of what runs would be removed.
TEST_F(PostgresFaults, ADatabaseThatCannotBeReachedAnyMoreIsAnOutage) {
  StartServer();
  // In a moment in which the store has no connection, nor makes one.
  const auto execute = [&](const std::string& sql) {
    return WaitUntil([&] {
      const auto admin = server_->Connect();
      return admin.ok() &&
             (*admin)
                 ->Execute(
                     "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                     " WHERE usename = 'runner'")
                 .ok() &&
             (*admin)->Execute(sql).ok();
    });
  };
  ASSERT_TRUE(execute("CREATE USER runner"));
  ASSERT_TRUE(execute("GRANT CREATE ON DATABASE " + database_ + " TO runner"));
  const std::string address =
      absl::StrReplaceAll(server_->Address(database_), {{"user=postgres", "user=runner"}});
  const auto store = MustOpen(address);
  ASSERT_TRUE(store->Commit(Creation()).ok());
  const std::pair<std::string, std::string> kOutages[] = {
      {"ALTER DATABASE " + database_ + " RENAME TO away",
       "ALTER DATABASE away RENAME TO " + database_},
      {"ALTER ROLE runner NOLOGIN", "ALTER ROLE runner LOGIN"},
      {"REVOKE CONNECT ON DATABASE " + database_ + " FROM PUBLIC",
       "GRANT CONNECT ON DATABASE " + database_ + " TO PUBLIC"}};
  int64_t said = 0;
  for (const auto& [begin, end] : kOutages) {
    ASSERT_TRUE(execute(begin)) << begin;
    ASSERT_TRUE(execute("SELECT 1"));  // connections from before it
    const auto read = store->GetExperiment(kPostgresFaultsKey);
    EXPECT_TRUE(absl::IsUnavailable(read.status())) << begin << ": " << read.status();
    const auto written = store->Commit(Say("lost"));
    EXPECT_TRUE(absl::IsUnavailable(written.status())) << begin << ": " << written.status();
    const Status bulk = MaintenanceOf(*store).TakeSnapshot().status();
    EXPECT_TRUE(absl::IsUnavailable(bulk)) << begin << ": " << bulk;
    ASSERT_TRUE(execute(end)) << end;
    EXPECT_TRUE(store->GetExperiment(kPostgresFaultsKey).ok()) << end;
    EXPECT_TRUE(store->Commit(Say(absl::StrCat("again", ++said))).ok()) << end;
  }
  EXPECT_THAT(Said(*store), SizeIs(3)) << "and nothing of what was refused";
  // Who opens one that is not there is told what is wrong.
  ASSERT_TRUE(absl::IsNotFound(OpenPostgres({.address = server_->Address("away")}).status()));
}

TEST_F(PostgresFaults, TheConnectionBreaksDuringCommit) {
  StartServer();
  PostgresProxy proxy(server_->socket());
  const auto store = MustOpen(proxy.Address(database_));
  const auto observer = MustOpen();
  int64_t revision = *store->Commit(Creation());
  for (int round = 0; round < 3; ++round) {
    for (const auto cut : {PostgresProxy::Cut::kAnswer, PostgresProxy::Cut::kRequest}) {
      ASSERT_TRUE(store->ReleaseLease({kPostgresFaultsKey, -1}).ok());  // it is connected again
      proxy.Arm(cut);
      Batch batch = Creation();
      batch.epoch = 2 * round;  // taking the lease and deleting have raised it
      batch.put->expected = revision;
      batch.trials.clear();
      batch.events = Say(absl::StrCat(proxy.cuts())).events;
      const int cuts = proxy.cuts();
      const auto committed = store->Commit(batch);
      ASSERT_TRUE(committed.ok()) << committed.status();
      EXPECT_EQ(proxy.cuts(), cuts + 1);
      EXPECT_EQ(*committed, revision + 1) << "another Commit took effect";
      EXPECT_EQ(observer->GetExperiment(kPostgresFaultsKey)->revision, *committed);
      revision = *committed;
    }
    ASSERT_TRUE(store->ReleaseLease({kPostgresFaultsKey, -1}).ok());
    proxy.Arm(PostgresProxy::Cut::kAnswer);
    const auto lease = store->AcquireLease({.experiment = kPostgresFaultsKey,
                                            .holder = absl::StrCat("holder", round),
                                            .now = absl::FromUnixSeconds(1000 * round),
                                            .ttl = absl::Seconds(1)});
    ASSERT_TRUE(lease.ok()) << lease.status();
    EXPECT_EQ(lease->epoch(), 2 * round + 1) << "the lease was taken twice";
    EXPECT_EQ(observer->GetLease(kPostgresFaultsKey)->epoch(), 2 * round + 1);
    ASSERT_TRUE(store->ReleaseLease({kPostgresFaultsKey, lease->epoch()}).ok());
    ASSERT_TRUE(store
                    ->Commit({.experiment = kPostgresFaultsKey,
                              .epoch = lease->epoch(),
                              .delete_experiment = true})
                    .ok());
    revision = *store->Commit(Creation());
  }
}

TEST_F(PostgresFaults, SaysSoWhenItIsNotKnownWhetherACommitTookEffect) {
  StartServer();
  PostgresProxy proxy(server_->socket());
  const auto store = MustOpen(proxy.Address(database_), absl::Milliseconds(300));
  const auto observer = MustOpen();
  ASSERT_TRUE(store->Commit(Creation()).ok());
  proxy.Refuse(true);
  proxy.Arm(PostgresProxy::Cut::kAnswer);
  const Status status = store->Commit(Say("perhaps")).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("not known"));
  EXPECT_EQ(Said(*observer)["perhaps"], 1);
  proxy.Refuse(false);
  ASSERT_TRUE(store->Commit(Say("surely")).ok());
  EXPECT_THAT(Said(*observer), ElementsAre(std::pair("perhaps", 1), std::pair("surely", 1)));
}

TEST_F(PostgresFaults, TheServerIsGoneAndComesBack) {
  StartServer();
  const auto store = MustOpen();
  ASSERT_TRUE(store->Commit(Creation()).ok());
  EXPECT_EQ(*store->AwaitChange(0, kLong), 1);
  server_->Stop(SIGINT);
  const absl::Duration began = RealClock()->Monotonic();
  const Status write = store->Commit(Say("lost")).status();
  EXPECT_TRUE(absl::IsUnavailable(write)) << write;
  EXPECT_THAT(Message(write), HasSubstr("postgres://postgres@"));
  const Status read = store->GetExperiment(kPostgresFaultsKey).status();
  EXPECT_TRUE(absl::IsUnavailable(read)) << read;
  EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(20)) << "too long for a caller";
  const Status open = OpenPostgres({.address = server_->Address(database_)}).status();
  EXPECT_TRUE(absl::IsUnavailable(open)) << open;

  server_->Start();
  std::thread writer([&] { EXPECT_TRUE(store->Commit(Say("back")).ok()); });
  EXPECT_EQ(*store->AwaitChange(1, kLong), 2) << "who waited before waits on";
  writer.join();
  EXPECT_THAT(Said(*store), ElementsAre(std::pair("back", 1)));
}

// A process that stops in the middle of a transaction must not keep the others out for ever.
TEST_F(PostgresFaults, AWriterThatHangsIsPassedBy) {
  StartServer();
  const auto store = MustOpen();
  ASSERT_TRUE(store->Commit(Creation()).ok());
  const auto hanging = server_->Connect(database_);
  ASSERT_TRUE(hanging.ok() && (*hanging)->Execute("BEGIN; SELECT * FROM store FOR UPDATE").ok());
  const absl::Duration began = RealClock()->Monotonic();
  const Status status = store->Commit(Say("patient")).status();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(15));
}

TEST_F(PostgresFaults, ProcessesThatWriteAtOnceLoseNothing) {
  StartServer();
  constexpr int kProcesses = 4;
  constexpr int kEach = 40;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    // All of them find an empty database, and one experiment is created.
    auto store = OpenPostgres({.address = server_->Address(database_)});
    if (!store.ok()) _exit(2);
    const Status created = (*store)->Commit(Creation()).status();
    if (!created.ok() && !absl::IsAborted(created)) _exit(3);
    for (int done = 0; done < kEach;) {
      const auto read = (*store)->GetTrial({kPostgresFaultsKey, 1});
      if (!read.ok()) _exit(4);
      Batch batch = Say(absl::StrCat(process, ".", done));
      batch.trials = {{read->record, read->revision}};
      batch.trials[0].record.set_last_step(read->record.last_step() + 1);
      const Status status = (*store)->Commit(batch).status();
      if (!status.ok() && !absl::IsAborted(status)) _exit(5);
      done += status.ok() ? 1 : 0;
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  }
  const auto store = MustOpen();
  EXPECT_EQ(store->GetTrial({kPostgresFaultsKey, 1})->record.last_step(), kProcesses * kEach);
  EXPECT_THAT(Said(*store), SizeIs(kProcesses * kEach));
  EXPECT_EQ(*store->Revision(), 1 + kProcesses * kEach);
}

class PostgresFullDisk : public PostgresFaults {
 protected:
  void SetUp() override {
    PostgresFaults::SetUp();
    if (IsSkipped()) return;
    char folder[] = "/tmp/shirabe-full-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    mounted_ = mount("shirabe", folder, "tmpfs", 0, "size=160m") == 0;
    if (!mounted_) GTEST_SKIP() << "no file system of limited size can be mounted here";
    PostgresServer::Give(folder_);
    StartServer(folder_ + "/data");
  }
  void TearDown() override {
    server_ = nullptr;
    EXPECT_TRUE(!mounted_ || umount2(folder_.c_str(), MNT_DETACH) == 0);
    EXPECT_TRUE(folder_.empty() || RemoveAll(folder_).ok());
  }

  std::string folder_;
  bool mounted_ = false;
};

TEST_F(PostgresFullDisk, IsRefusedAndForgotten) {
  const auto store = MustOpen();
  ASSERT_TRUE(store->Commit(Creation()).ok());
  const std::string filler = folder_ + "/filler";
  {
    const Fd fd(open(filler.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const std::string block(1 << 16, 'x');
    while (write(fd.get(), block.data(), block.size()) > 0) continue;
  }
  std::string text(200'000, ' ');
  uint64_t state = 7;
  for (char& c : text) c = static_cast<char>('!' + (state = Mix(state, 1)) % 90);
  int written = 0;
  Status status;
  while (status.ok() && written < 1000) {
    status = store->Commit(Say(absl::StrCat(written, text))).status();
    written += status.ok() ? 1 : 0;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("disk is full"));
  EXPECT_THAT(Said(*store), SizeIs(written)) << "reading goes on";
  ASSERT_EQ(unlink(filler.c_str()), 0);
  status = store->Commit(Say("room")).status();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(Said(*store), SizeIs(written + 1));
}

}  // namespace
}  // namespace shirabe::db
