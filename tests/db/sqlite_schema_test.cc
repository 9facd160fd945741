// How a file becomes ours, how an older one is migrated, and which files are refused.
#include "db/sqlite/sqlite_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/file_io.h"
#include "base/open_beneath.h"
#include "db/maintenance.h"
#include "db/schedules.h"
#include "db/sqlite/sqlite_store.h"

namespace shirabe::db {
namespace {

using ::testing::HasSubstr;

const ExperimentKey kKey{"default", "mnist"};

Batch CreationNamed(const std::string& name) {
  Batch batch{.experiment = {"default", name}};
  batch.put.emplace();
  batch.put->record.mutable_metadata()->set_namespace_("default");
  batch.put->record.mutable_metadata()->set_name(name);
  return batch;
}

class SqliteSchema : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/shirabe-schema-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/shirabe.db";
  }
  void TearDown() override { ASSERT_TRUE(RemoveAll(folder_).ok()); }

  StatusOr<std::unique_ptr<Store>> OpenWith(const SchemaSteps& schema, bool read_only = false) {
    return OpenSqlite({.path = path_, .read_only = read_only, .schema = schema});
  }
  StatusOr<std::unique_ptr<Store>> OpenIt(bool read_only = false) {
    return OpenWith(CurrentSchema(), read_only);
  }
  void Execute(const std::string& sql) {
    auto db = SqliteConnection::Open({.path = path_, .mode = ConnectOptions::Mode::kCreate});
    ASSERT_TRUE(db.ok()) << db.status();
    const Status status = (*db)->Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
  int64_t ReadInt(const std::string& sql) {
    auto db = *SqliteConnection::Open({.path = path_, .mode = ConnectOptions::Mode::kRead});
    return *db->ReadInt(sql);
  }

  std::string folder_;
  std::string path_;
};

// The present schema and one step more.
SchemaSteps Longer(const std::string& step) {
  SchemaSteps steps = CurrentSchema();
  steps.push_back(step);
  return steps;
}

TEST_F(SqliteSchema, MarksItsFiles) {
  ASSERT_TRUE(OpenIt().ok());
  EXPECT_EQ(ReadInt("PRAGMA application_id"), 0x53687262);
  EXPECT_EQ(ReadInt("PRAGMA user_version"), static_cast<int64_t>(CurrentSchema().size()));
}

TEST_F(SqliteSchema, CreatesTheFolderAndTakesAnEmptyFile) {
  ASSERT_TRUE(OpenSqlite({.path = folder_ + "/a/b/c.db"}).ok());
  std::ofstream(path_).close();
  EXPECT_TRUE(absl::IsNotFound(OpenIt(true).status()));
  EXPECT_TRUE(OpenIt().ok());
}

// It holds the tokens by which attempts are told apart.
TEST_F(SqliteSchema, ANewFileIsItsOwnersAlone) {
  auto store = OpenIt();
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->Commit(CreationNamed("mnist")).ok());
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat info;
    ASSERT_EQ(stat((path_ + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0077, 0u) << suffix;
  }
}

TEST_F(SqliteSchema, ReadingOnlyCreatesNothing) {
  const Status status = OpenIt(true).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(path_));
  EXPECT_THAT(Message(status), HasSubstr("shirabe run"));
  EXPECT_FALSE(ReadFile(path_).ok());
}

TEST_F(SqliteSchema, NeedsAFile) {
  EXPECT_TRUE(absl::IsInvalidArgument(OpenSqlite({.path = ""}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(OpenSqlite({.path = ":memory:"}).status()));
  const Status folder = OpenSqlite({.path = folder_}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(folder)) << folder;
  EXPECT_THAT(Message(folder), HasSubstr(folder_));
}

TEST_F(SqliteSchema, OddPathsArePaths) {
  const std::string odd = folder_ + "/file:a?mode=ro#%41 é.db";
  ASSERT_TRUE((*OpenSqlite({.path = odd}))->Commit(CreationNamed("mnist")).ok());
  EXPECT_TRUE((*OpenSqlite({.path = odd, .read_only = true}))->GetExperiment(kKey).ok());
}

TEST_F(SqliteSchema, RefusesAnotherProgramsDatabase) {
  Execute("CREATE TABLE bookmarks(url TEXT)");
  for (const bool read_only : {false, true}) {
    const Status status = OpenIt(read_only).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("another program"));
    EXPECT_THAT(Message(status), HasSubstr(path_));
  }
  EXPECT_EQ(ReadInt("SELECT count(*) FROM sqlite_schema"), 1) << "it was written to";
}

TEST_F(SqliteSchema, RefusesANewerFileAndNamesBothVersions) {
  ASSERT_TRUE(OpenIt().ok());
  Execute("PRAGMA user_version = 99");
  for (const bool read_only : {false, true}) {
    const Status status = OpenIt(read_only).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("99"));
    EXPECT_THAT(Message(status), HasSubstr(std::to_string(CurrentSchema().size())));
  }
}

// As 0.1 has written it: there were no schedules.
TEST_F(SqliteSchema, AFileOfTheFirstReleaseIsReadAsItIs) {
  const SchemaSteps first = {CurrentSchema()[0]};
  ASSERT_TRUE((*OpenWith(first))->Commit(CreationNamed("mnist")).ok());
  {
    const auto reading = OpenIt(true);
    ASSERT_TRUE(reading.ok()) << reading.status();
    EXPECT_TRUE((*reading)->GetExperiment(kKey).ok());
    EXPECT_TRUE(absl::IsNotFound(SchedulesOf(**reading).GetSchedule(kKey).status()));
    EXPECT_TRUE(SchedulesOf(**reading).ListSchedules("").value().empty());
    EXPECT_TRUE((*MaintenanceOf(**reading).TakeSnapshot())->Schedules().value().empty());
  }
  EXPECT_EQ(ReadInt("PRAGMA user_version"), 1);
  ASSERT_TRUE(OpenIt().ok());
  EXPECT_EQ(ReadInt("PRAGMA user_version"), 2);
}

TEST_F(SqliteSchema, MigratesAnOlderFileAndKeepsItsRecords) {
  ASSERT_TRUE((*OpenIt())->Commit(CreationNamed("mnist")).ok());
  const SchemaSteps longer = Longer("ALTER TABLE trial ADD COLUMN note TEXT");

  const Status reading = OpenWith(longer, true).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(reading)) << reading;
  EXPECT_THAT(Message(reading), HasSubstr("older schema version 2"));

  auto migrated = OpenWith(longer);
  ASSERT_TRUE(migrated.ok()) << migrated.status();
  EXPECT_TRUE((*migrated)->GetExperiment(kKey).ok());
  EXPECT_TRUE((*migrated)->Commit(CreationNamed("next")).ok());
  EXPECT_TRUE(OpenWith(longer, true).ok());
  EXPECT_EQ(ReadInt("SELECT count(*) FROM pragma_table_info('trial') WHERE name = 'note'"), 1);
  EXPECT_TRUE(absl::IsUnimplemented(OpenIt().status())) << "the older program took it";
}

// The program that wrote it goes on with the copy.
TEST_F(SqliteSchema, AnOlderFileIsCopiedBeforeItIsMigrated) {
  auto older = *OpenIt();  // still open while the newer program comes
  ASSERT_TRUE(older->Commit(CreationNamed("mnist")).ok());
  const auto migrated = OpenWith(Longer("DROP TABLE trial"));
  ASSERT_TRUE(migrated.ok()) << migrated.status();
  const std::string copy = path_ + ".schema-2";
  EXPECT_THAT(MaintenanceOf(**migrated).OpeningNotice(), HasSubstr(copy));
  EXPECT_EQ(MaintenanceOf(**OpenWith(Longer("DROP TABLE trial"))).OpeningNotice(), "");
  struct stat info;
  ASSERT_EQ(stat(copy.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto kept = OpenSqlite({.path = copy});
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE((*kept)->GetExperiment(kKey).ok());
  EXPECT_TRUE((*kept)->Commit(CreationNamed("next")).ok());
}

TEST_F(SqliteSchema, ACopyReplacesNothing) {
  ASSERT_TRUE((*OpenIt())->Commit(CreationNamed("mnist")).ok());
  const std::string copy = path_ + ".schema-2";
  ASSERT_TRUE(WriteFileAtomic(copy, "of last year").ok());
  // Left by a process that was killed.
  ASSERT_TRUE(WriteFileAtomic(copy + ".partial", "half").ok());
  const auto migrated = OpenWith(Longer("CREATE TABLE more(a INTEGER) STRICT"));
  ASSERT_TRUE(migrated.ok()) << migrated.status();
  EXPECT_THAT(MaintenanceOf(**migrated).OpeningNotice(), HasSubstr(copy + "-2"));
  EXPECT_EQ(*ReadFile(copy), "of last year");
  EXPECT_TRUE((*OpenSqlite({.path = copy + "-2"}))->GetExperiment(kKey).ok());
  EXPECT_FALSE(ReadFile(copy + ".partial").ok());
}

TEST_F(SqliteSchema, ANewFileNeedsNoCopyAndAFailedMigrationLeavesNone) {
  EXPECT_EQ(MaintenanceOf(**OpenIt()).OpeningNotice(), "");
  EXPECT_FALSE(OpenWith(Longer("ALTER TABLE no_such ADD b")).ok());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    files += entry.path().filename().string().find(".schema-") != std::string::npos;
  }
  EXPECT_EQ(files, 0);
}

TEST_F(SqliteSchema, WithoutRoomForACopyItStaysAsItIs) {
  signal(SIGXFSZ, SIG_IGN);
  {
    auto store = *OpenIt();
    ASSERT_TRUE(store->Commit(CreationNamed("mnist")).ok());
    Batch batch{.experiment = kKey};
    batch.events.resize(1);
    batch.events[0].set_namespace_("default");
    batch.events[0].set_experiment("mnist");
    batch.events[0].set_message(std::string(400'000, 'x'));
    ASSERT_TRUE(store->Commit(batch).ok());
  }
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 100 << 10;  // enough for the log of the change, not for the copy
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = OpenWith(Longer("CREATE TABLE more(a INTEGER) STRICT")).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("copied to " + path_ + ".schema-2"));
  EXPECT_THAT(Message(status), HasSubstr("bytes must be free"));
  EXPECT_FALSE(ReadFile(path_ + ".schema-2").ok());
  EXPECT_FALSE(ReadFile(path_ + ".schema-2.partial").ok());
  EXPECT_EQ(ReadInt("PRAGMA user_version"), std::ssize(CurrentSchema()));
  EXPECT_TRUE((*OpenIt())->GetExperiment(kKey).ok());
}

TEST_F(SqliteSchema, ANewFileShrinksAgain) {
  auto store = *OpenIt();
  for (int i = 0; i < 200; ++i) {
    Batch batch = CreationNamed("mnist" + std::to_string(i));
    batch.put->record.mutable_status()->mutable_shirabe()->set_memo(std::string(20'000, 'x'));
    ASSERT_TRUE(store->Commit(batch).ok());
  }
  const int64_t pages = ReadInt("PRAGMA page_count");
  for (int i = 0; i < 200; ++i) {
    Batch batch{.experiment = {"default", "mnist" + std::to_string(i)}};
    batch.delete_experiment = true;
    ASSERT_TRUE(store->Commit(batch).ok());
  }
  EXPECT_EQ(ReadInt("PRAGMA page_count"), pages);
  while (*MaintenanceOf(*store).ReleaseSpace()) {
  }
  EXPECT_LT(ReadInt("PRAGMA page_count"), pages / 5);
  EXPECT_EQ(ReadInt("PRAGMA freelist_count"), 0);
}

// Made as release 0.1 made them, without the table by which pages are given back.
class OldSqliteFile : public SqliteSchema {
 protected:
  // With `deleted` of 200 experiments deleted again.
  std::unique_ptr<Store> FillAndDelete(int deleted, int64_t max_rewritten_pages) {
    EXPECT_TRUE(OpenIt().ok());
    Execute("PRAGMA auto_vacuum = NONE; VACUUM");
    EXPECT_EQ(ReadInt("PRAGMA auto_vacuum"), 0);
    auto store = *OpenSqlite({.path = path_, .max_rewritten_pages = max_rewritten_pages});
    for (int i = 0; i < 200; ++i) {
      Batch batch = CreationNamed("mnist" + std::to_string(i));
      batch.put->record.mutable_status()->mutable_shirabe()->set_memo(std::string(20'000, 'x'));
      EXPECT_TRUE(store->Commit(batch).ok());
    }
    for (int i = 0; i < deleted; ++i) {
      Batch batch{.experiment = {"default", "mnist" + std::to_string(i)}};
      batch.delete_experiment = true;
      EXPECT_TRUE(store->Commit(batch).ok());
    }
    return store;
  }
};

TEST_F(OldSqliteFile, ShrinksWhileOthersReadAndWrite) {
  const auto store = FillAndDelete(190, 1 << 14);
  const int64_t pages = ReadInt("PRAGMA page_count");
  const auto other = *OpenIt();  // as of a server
  const auto snapshot = *MaintenanceOf(*other).TakeSnapshot();
  ASSERT_TRUE(snapshot->GetExperiment({"default", "mnist195"}).ok());
  EXPECT_FALSE(*MaintenanceOf(*store).ReleaseSpace());
  EXPECT_LT(ReadInt("PRAGMA page_count"), pages / 5);
  EXPECT_EQ(ReadInt("PRAGMA auto_vacuum"), 2);
  EXPECT_EQ(snapshot->Names()->size(), 200) << "a backup that is being made";
  EXPECT_EQ(other->ListExperiments("")->size(), 10);
  EXPECT_TRUE(other->Commit(CreationNamed("next")).ok());
  EXPECT_EQ(store->ListExperiments("")->size(), 11);
  EXPECT_TRUE(store->Commit(CreationNamed("later")).ok());
}

TEST_F(OldSqliteFile, ALargeOneKeepsItsSizeAndUsesItAgain) {
  const auto store = FillAndDelete(150, 10);
  const int64_t pages = ReadInt("PRAGMA page_count");
  EXPECT_FALSE(*MaintenanceOf(*store).ReleaseSpace());
  EXPECT_EQ(ReadInt("PRAGMA page_count"), pages);
  EXPECT_EQ(ReadInt("PRAGMA auto_vacuum"), 0);
}

TEST_F(OldSqliteFile, ALittleSpaceIsNotWorthIt) {
  const auto store = FillAndDelete(20, 1 << 14);
  EXPECT_FALSE(*MaintenanceOf(*store).ReleaseSpace());
  EXPECT_EQ(ReadInt("PRAGMA auto_vacuum"), 0);
}

TEST_F(OldSqliteFile, OneThatCannotBeRewrittenNowStaysAsItIs) {
  const auto store = FillAndDelete(190, 1 << 14);
  auto busy = *SqliteConnection::Open({.path = path_, .mode = ConnectOptions::Mode::kWrite});
  ASSERT_TRUE(busy->Execute("BEGIN IMMEDIATE").ok());
  EXPECT_FALSE(*MaintenanceOf(*store).ReleaseSpace()) << "it is no failure of what was deleted";
  EXPECT_EQ(ReadInt("PRAGMA auto_vacuum"), 0);
  ASSERT_TRUE(busy->Execute("COMMIT").ok());
  EXPECT_FALSE(*MaintenanceOf(*store).ReleaseSpace());
  EXPECT_EQ(ReadInt("PRAGMA auto_vacuum"), 2);
}

TEST_F(SqliteSchema, AMigrationIsWholeOrNotAtAll) {
  ASSERT_TRUE((*OpenIt())->Commit(CreationNamed("mnist")).ok());
  const Status status =
      OpenWith(Longer("CREATE TABLE half(a INTEGER) STRICT; ALTER TABLE no_such ADD b")).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), HasSubstr("schema version 3"));
  EXPECT_EQ(ReadInt("SELECT count(*) FROM sqlite_schema WHERE name = 'half'"), 0);
  EXPECT_TRUE((*OpenIt())->GetExperiment(kKey).ok());
}

TEST_F(SqliteSchema, ARunningOlderProgramStopsWriting) {
  auto older = *OpenIt();
  ASSERT_TRUE(older->Commit(CreationNamed("mnist")).ok());
  ASSERT_TRUE(OpenWith(Longer("CREATE TABLE more(a INTEGER) STRICT")).ok());
  const Status status = older->Commit(CreationNamed("next")).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
}

// It is said where the record is used; the experiments of others are listed all the same.
TEST_F(SqliteSchema, ValuesThatANewerProgramWroteAreAnErrorOfTheirRecordAlone) {
  auto store = *OpenIt();
  Batch batch = CreationNamed("mnist");
  batch.put->record.mutable_spec()->set_resume_policy(static_cast<v1::ResumePolicy>(99));
  v1::Trial trial;
  trial.set_namespace_("default");
  trial.set_experiment("mnist");
  trial.set_number(1);
  trial.set_phase(static_cast<v1::TrialPhase>(77));
  batch.trials.push_back({trial, 0});
  ASSERT_TRUE(store->Commit(batch).ok());
  ASSERT_TRUE(store->Commit(CreationNamed("next")).ok());
  const auto all = store->ListExperiments("");
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->size(), 2);
  const Status read = store->GetTrial({kKey, 1}).status();
  EXPECT_TRUE(absl::IsUnimplemented(read)) << read;
  EXPECT_THAT(Message(read), HasSubstr("phase: 77 is not a value of TrialPhase"));
}

}  // namespace
}  // namespace shirabe::db
