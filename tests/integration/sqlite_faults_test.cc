// The SQLite store in a hostile world: killed in the middle of commits, on a full or read-only
// disk, beside other processes, on damaged files. Nothing acknowledged may be lost, nothing half
// written may appear, and each refusal names the file and says what to do.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "db/sqlite/sqlite_store.h"

namespace shirabe::db {
namespace {

using ::testing::HasSubstr;

ExperimentKey Key(int64_t i) { return {"default", absl::StrCat("e", i)}; }

Batch CreationNumbered(int64_t i) {
  Batch batch{.experiment = Key(i)};
  batch.put.emplace();
  batch.put->record.mutable_metadata()->set_namespace_("default");
  batch.put->record.mutable_metadata()->set_name(Key(i).name);
  return batch;
}

Batch Ask(int64_t i, const std::string& message = "") {
  Batch batch{.experiment = Key(i)};
  batch.events.resize(1);
  batch.events[0].set_namespace_("default");
  batch.events[0].set_experiment(Key(i).name);
  batch.events[0].set_message(message);
  return batch;
}

// A pipe on which processes tell each other numbers.
class Channel {
 public:
  Channel() {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    reading_ = Fd(ends[0]);
    writing_ = Fd(ends[1]);
  }
  void Send(int64_t value) { CHECK(write(writing_.get(), &value, sizeof value) == sizeof value); }
  // False at the end: every process that could send has closed it or is gone.
  bool Receive(int64_t* value) {
    return read(reading_.get(), value, sizeof *value) == sizeof *value;
  }
  void CloseSending() { writing_ = Fd(); }

 private:
  Fd reading_;
  Fd writing_;
};

// A child process; killed, if need be, at the end of its scope. The test must have no threads when
// it starts one.
class Child {
 public:
  explicit Child(const std::function<int()>& body) : pid_(fork()) {
    CHECK(pid_ >= 0);
    if (pid_ == 0) _exit(body());
  }
  ~Child() {
    if (pid_ > 0) Kill();
  }
  void Kill() {
    kill(pid_, SIGKILL);
    Wait();
  }
  // Its exit status; -1 if it was killed.
  int Wait() {
    int status = 0;
    CHECK(waitpid(pid_, &status, 0) == pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_;
};

class SqliteFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/shirabe-faults-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    ASSERT_EQ(chmod(folder, 0755), 0);
    folder_ = folder;
    path_ = folder_ + "/shirabe.db";
  }
  void TearDown() override { ASSERT_TRUE(RemoveAll(folder_).ok()); }

  StatusOr<std::unique_ptr<Store>> OpenIt(bool read_only = false) const {
    return OpenSqlite({.path = path_, .read_only = read_only});
  }
  std::unique_ptr<Store> MustOpen(bool read_only = false) const {
    auto store = OpenIt(read_only);
    EXPECT_TRUE(store.ok()) << store.status();
    CHECK(store.ok());
    return *std::move(store);
  }

  std::string folder_;
  std::string path_;
};

TEST_F(SqliteFaults, ReopeningKeepsEverything) {
  int64_t revision = 0;
  {
    auto store = MustOpen();
    ASSERT_TRUE(store->Commit(CreationNumbered(1)).ok());
    ASSERT_TRUE(store
                    ->AcquireLease({.experiment = Key(1),
                                    .holder = "a",
                                    .now = absl::UnixEpoch(),
                                    .ttl = absl::Seconds(10)})
                    .ok());
    revision = *store->Commit(Ask(1));
  }
  auto store = MustOpen();
  EXPECT_EQ(*store->Revision(), revision);
  EXPECT_EQ(store->GetLease(Key(1))->epoch(), 1);
  EXPECT_EQ(store->ListEvents({.experiment = Key(1)})->size(), 1u);
  EXPECT_EQ(*store->Commit(Ask(1)), revision + 1);
}

// ---- kill -9
// -------------------------------------------------------------------------------------

constexpr int kWriters = 3;

// Trial n of an experiment, with all that must come and go with it.
Batch TrialBatch(int writer, const Versioned<v1::Experiment>& experiment) {
  const int64_t n = experiment.record.status().trials() + 1;
  Batch batch{.experiment = Key(writer), .put = {{experiment.record, experiment.revision}}};
  batch.put->record.mutable_status()->set_trials(n);
  batch.trials.resize(1);
  v1::Trial& trial = batch.trials[0].record;
  trial.set_namespace_("default");
  trial.set_experiment(Key(writer).name);
  trial.set_number(n);
  batch.attempts.resize(1);
  v1::Attempt& attempt = batch.attempts[0].record;
  attempt.set_namespace_("default");
  attempt.set_experiment(Key(writer).name);
  attempt.set_trial(n);
  attempt.set_number(1);
  for (int64_t step = 0; step < 20; ++step) {
    batch.observations.push_back(
        {.trial = n, .attempt = 1, .metric = "loss", .step = step, .value = 1.0 / (1.0 + step)});
  }
  return batch;
}

// Adds trials until it is killed, and tells of each once it is durable.
int CommitForEver(const std::string& path, Channel* acknowledged) {
  auto store = OpenSqlite({.path = path});
  if (!store.ok()) return 1;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      (*store)->Commit(CreationNumbered(writer)).IgnoreError();
      for (;;) {
        const auto experiment = (*store)->GetExperiment(Key(writer));
        CHECK(experiment.ok());
        const Batch batch = TrialBatch(writer, *experiment);
        CHECK((*store)->Commit(batch).ok());
        acknowledged->Send(batch.trials[0].record.number() * kWriters + writer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// Every trial is there with all that was committed with it. Returns how many there are.
int64_t CheckWhole(Store* store, int writer) {
  const auto experiment = store->GetExperiment(Key(writer));
  if (absl::IsNotFound(experiment.status())) return 0;
  EXPECT_TRUE(experiment.ok()) << experiment.status();
  const int64_t trials = experiment->record.status().trials();
  // Read later than the experiment, so there may be more.
  EXPECT_GE(store->ListTrials({.experiment = Key(writer)})->size(), static_cast<size_t>(trials));
  EXPECT_GE(store->ListAttempts({.experiment = Key(writer)})->size(), static_cast<size_t>(trials));
  if (trials > 0) {
    EXPECT_EQ(store->ListObservations({.trial = {Key(writer), trials}})->size(), 20u);
  }
  return trials;
}

TEST_F(SqliteFaults, KilledWhileCommittingLosesNothingAcknowledged) {
  std::map<int, int64_t> acknowledged;
  for (int round = 0; round < 20; ++round) {
    Channel channel;
    Child child([&] { return CommitForEver(path_, &channel); });
    channel.CloseSending();
    int64_t message = 0;
    const auto note = [&] { acknowledged[message % kWriters] = message / kWriters; };
    for (int i = 0; i <= round && channel.Receive(&message); ++i) note();
    // A reader of another process sees only whole commits, while the writers go on.
    auto reader = MustOpen(true);
    for (int writer = 0; writer < kWriters; ++writer) CheckWhole(reader.get(), writer);
    child.Kill();
    while (channel.Receive(&message)) note();

    auto store = MustOpen();
    for (int writer = 0; writer < kWriters; ++writer) {
      const int64_t trials = CheckWhole(store.get(), writer);
      EXPECT_GE(trials, acknowledged[writer]) << "lost in round " << round;
      // One was under way at the kill. Another may have been at the kill before: its frames were in
      // the log but not yet in the index that our reader kept alive, and were found again since.
      EXPECT_LE(trials, acknowledged[writer] + 2) << "more than was tried";
      EXPECT_EQ(store->ListTrials({.experiment = Key(writer)})->size(),
                static_cast<size_t>(trials));
      acknowledged[writer] = trials;
    }
  }
  EXPECT_GT(acknowledged[0], 0);
}

// ---- no space
// ------------------------------------------------------------------------------------

// Commits until it is refused; the store must hold exactly what was not.
Status FillUp(Store* store, int64_t* kept) {
  const Batch batch = Ask(1, std::string(20'000, 'x'));
  for (*kept = 0; *kept < 10'000; ++*kept) {
    const Status status = store->Commit(batch).status();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void ExpectFull(Store* store, const std::string& path) {
  int64_t kept = 0;
  const Status full = FillUp(store, &kept);
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(Message(full), HasSubstr("disk full"));
  EXPECT_THAT(Message(full), HasSubstr(path));
  const auto events = store->ListEvents({.experiment = Key(1)});
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_EQ(static_cast<int64_t>(events->size()), kept);
}

TEST_F(SqliteFaults, FileSizeLimitIsAFullDisk) {
  signal(SIGXFSZ, SIG_IGN);
  auto store = MustOpen();
  ASSERT_TRUE(store->Commit(CreationNumbered(1)).ok());
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  ExpectFull(store.get(), path_);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(store->Commit(Ask(1)).ok()) << "it does not go on once there is space";
}

// A small file system, gone at the end of its scope.
class SmallDisk {
 public:
  explicit SmallDisk(std::string folder) : folder_(std::move(folder)) {
    CHECK(MakeDirs(folder_).ok());
    mounted_ = mount("shirabe-test", folder_.c_str(), "tmpfs", 0, "size=3m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  bool MakeReadOnly() {
    return mount("shirabe-test", folder_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  const std::string folder_;
  bool mounted_;
};

TEST_F(SqliteFaults, FullDiskIsSaidAndOutlived) {
  const SmallDisk disk(folder_ + "/disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk takes root";
  path_ = folder_ + "/disk/shirabe.db";
  const std::string ballast = folder_ + "/disk/ballast";
  ASSERT_TRUE(WriteFileAtomic(ballast, std::string(1 << 20, 'b')).ok());
  auto store = MustOpen();
  ASSERT_TRUE(store->Commit(CreationNumbered(1)).ok());
  ExpectFull(store.get(), path_);
  ASSERT_TRUE(RemoveAll(ballast).ok());
  EXPECT_TRUE(store->Commit(Ask(1)).ok()) << "it does not go on once there is space";
  store.reset();
  EXPECT_TRUE(MustOpen()->GetExperiment(Key(1)).ok());
}

TEST_F(SqliteFaults, NoSpaceToBeginWith) {
  const SmallDisk disk(folder_ + "/disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk takes root";
  path_ = folder_ + "/disk/shirabe.db";
  ASSERT_TRUE(WriteFileAtomic(folder_ + "/disk/ballast", std::string((3 << 20) - 8192, 'b')).ok());
  const Status status = OpenIt().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(path_));
}

// ---- no permission
// -------------------------------------------------------------------------------

TEST_F(SqliteFaults, ReadOnlyDiskCanBeRead) {
  SmallDisk disk(folder_ + "/disk");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk takes root";
  path_ = folder_ + "/disk/shirabe.db";
  ASSERT_TRUE(MustOpen()->Commit(CreationNumbered(1)).ok());
  ASSERT_TRUE(disk.MakeReadOnly());
  const Status status = OpenIt().status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(path_));
  EXPECT_TRUE(MustOpen(true)->GetExperiment(Key(1)).ok());
}

// Runs `body` as a user without privileges; its failures are told by the exit status.
int AsNobody(const std::function<bool()>& body) {
  return Child([&] {
           if (geteuid() == 0 && setuid(65534) != 0) return 2;
           return body() ? 0 : 1;
         })
      .Wait();
}

bool Denied(const Status& status, const std::string& path) {
  return absl::IsPermissionDenied(status) && Message(status).find(path) != std::string::npos;
}

TEST_F(SqliteFaults, SaysWhatMayNotBeWrittenOrRead) {
  ASSERT_TRUE(MustOpen()->Commit(CreationNumbered(1)).ok());
  ASSERT_EQ(chmod(path_.c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0555), 0);
  EXPECT_EQ(AsNobody([&] { return Denied(OpenIt().status(), path_); }), 0);
  EXPECT_EQ(AsNobody([&] { return MustOpen(true)->GetExperiment(Key(1)).ok(); }), 0);
  EXPECT_EQ(AsNobody([&] {
              const std::string absent = folder_ + "/absent.db";
              return Denied(OpenSqlite({.path = absent}).status(), absent);
            }),
            0);
  EXPECT_EQ(AsNobody([&] {
              const std::string absent = folder_ + "/no/folder.db";
              return Denied(OpenSqlite({.path = absent}).status(), folder_ + "/no");
            }),
            0);
  ASSERT_EQ(chmod(path_.c_str(), 0), 0);
  EXPECT_EQ(AsNobody([&] { return Denied(OpenIt(true).status(), path_); }), 0);
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(AsNobody([&] { return Denied(OpenIt(true).status(), path_); }), 0)
      << "it is there, for all that is known";
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
}

TEST_F(SqliteFaults, ReadOnlyStoreRefusesWrites) {
  ASSERT_TRUE(MustOpen()->Commit(CreationNumbered(1)).ok());
  auto store = MustOpen(true);
  EXPECT_TRUE(absl::IsPermissionDenied(store->Commit(Ask(1)).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(store->AcquireLease({.experiment = Key(1)}).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(store->ReleaseLease({Key(1), 1})));
}

// ---- other processes ----------------------------------------------------------------------------

TEST_F(SqliteFaults, LockedByAnotherProcess) {
  ASSERT_TRUE(MustOpen()->Commit(CreationNumbered(1)).ok());
  Channel locked;
  Channel release;
  Child child([&] {
    release.CloseSending();
    auto db = *SqliteConnection::Open({.path = path_});
    if (!db->Execute("BEGIN IMMEDIATE").ok()) return 1;
    locked.Send(1);
    int64_t ignored = 0;
    release.Receive(&ignored);
    return db->Execute("ROLLBACK").ok() ? 0 : 1;
  });
  int64_t ignored = 0;
  ASSERT_TRUE(locked.Receive(&ignored));
  auto store = *OpenSqlite({.path = path_, .patience = absl::Milliseconds(100)});
  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  const Status status = store->Commit(Ask(1)).status();
  getrusage(RUSAGE_SELF, &after);
  EXPECT_GE(after.ru_nvcsw - before.ru_nvcsw, 100) << "a short moment is missed by rare looks";
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("locked by another process"));
  EXPECT_TRUE(store->GetExperiment(Key(1)).ok()) << "a writer must not block readers";
  release.CloseSending();
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_TRUE(store->Commit(Ask(1)).ok());
}

TEST_F(SqliteFaults, GoneWhileOpen) {
  auto store = MustOpen();
  ASSERT_TRUE(store->Commit(CreationNumbered(1)).ok());
  // The connections that are open still have the file, a new one does not find it, and nobody
  // makes an empty one in its place.
  store = MustOpen();
  ASSERT_TRUE(RemoveAll(path_).ok());
  const Status status = store->Commit(Ask(1)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("gone"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SqliteFaults, ProcessesTakeTurns) {
  ASSERT_TRUE(MustOpen()->Commit(CreationNumbered(1)).ok());
  const auto commit = [&] {
    auto store = MustOpen();
    for (int i = 0; i < 50; ++i) {
      if (!store->Commit(Ask(1)).ok()) return 1;
    }
    return 0;
  };
  Child first(commit);
  Child second(commit);
  EXPECT_EQ(first.Wait(), 0);
  EXPECT_EQ(second.Wait(), 0);
  auto store = MustOpen();
  EXPECT_EQ(*store->Revision(), 101);
  EXPECT_EQ(store->ListEvents({.experiment = Key(1)})->size(), 100u);
}

TEST_F(SqliteFaults, ManyProcessesCreateTheFileTogether) {
  constexpr int kProcesses = 6;
  for (int round = 0; round < 5; ++round) {
    path_ = absl::StrCat(folder_, "/round", round, "/shirabe.db");
    Channel start;
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(std::make_unique<Child>([&, i] {
        start.CloseSending();
        int64_t ignored = 0;
        start.Receive(&ignored);
        auto store = OpenIt();
        const Status status =
            store.ok() ? (*store)->Commit(CreationNumbered(i)).status() : store.status();
        if (!status.ok()) std::cerr << status << "\n";
        return status.ok() ? 0 : 1;
      }));
    }
    start.CloseSending();
    for (auto& child : children) EXPECT_EQ(child->Wait(), 0);
    EXPECT_EQ(MustOpen()->ListExperiments("")->size(), static_cast<size_t>(kProcesses));
  }
}

// ---- damaged files
// -------------------------------------------------------------------------------

void ExpectDataLoss(const Status& status, const std::string& path) {
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(path));
}

TEST_F(SqliteFaults, AFileThatIsNoDatabase) {
  for (const std::string& contents :
       {std::string("hello\n"), std::string(10'000, 'x'), std::string(100, '\0'),
        std::string("SQLite format 3\0", 16)}) {
    ASSERT_TRUE(WriteFileAtomic(path_, contents).ok());
    for (const bool read_only : {false, true}) ExpectDataLoss(OpenIt(read_only).status(), path_);
    EXPECT_EQ(*ReadFile(path_), contents) << "it was written to";
  }
}

TEST_F(SqliteFaults, ATruncatedFile) {
  {
    auto store = MustOpen();
    ASSERT_TRUE(store->Commit(CreationNumbered(1)).ok());
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(store->Commit(Ask(1, std::string(9000, 'x'))).ok());
  }
  const std::string whole = *ReadFile(path_);
  for (const size_t size : {size_t{200}, size_t{4096}, size_t{8192 + 77}, whole.size() / 2}) {
    ASSERT_TRUE(WriteFileAtomic(path_, whole.substr(0, size)).ok());
    auto store = OpenIt();
    const Status status =
        store.ok() ? (*store)->ListEvents({.experiment = Key(1)}).status() : store.status();
    ExpectDataLoss(status, path_);
  }
}

TEST_F(SqliteFaults, ARecordThatCannotBeRead) {
  ASSERT_TRUE(MustOpen()->Commit(CreationNumbered(1)).ok());
  auto db = *SqliteConnection::Open({.path = path_});
  ASSERT_TRUE(db->Execute("UPDATE experiment SET body = x'ff'").ok());
  db.reset();
  const Status status = MustOpen()->GetExperiment(Key(1)).status();
  ExpectDataLoss(status, path_);
  EXPECT_THAT(Message(status), HasSubstr("experiment"));
}

}  // namespace
}  // namespace shirabe::db
