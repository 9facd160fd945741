// How a file becomes ours, how an older one is migrated, and which files are refused.
#include "db/sqlite/sqlite_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "base/file_io.h"
#include "base/open_beneath.h"
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

TEST_F(SqliteSchema, MigratesAnOlderFileAndKeepsItsRecords) {
  ASSERT_TRUE((*OpenIt())->Commit(CreationNamed("mnist")).ok());
  const SchemaSteps longer = Longer("ALTER TABLE trial ADD COLUMN note TEXT");

  const Status reading = OpenWith(longer, true).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(reading)) << reading;
  EXPECT_THAT(Message(reading), HasSubstr("older schema version 1"));

  auto migrated = OpenWith(longer);
  ASSERT_TRUE(migrated.ok()) << migrated.status();
  EXPECT_TRUE((*migrated)->GetExperiment(kKey).ok());
  EXPECT_TRUE((*migrated)->Commit(CreationNamed("next")).ok());
  EXPECT_TRUE(OpenWith(longer, true).ok());
  EXPECT_EQ(ReadInt("SELECT count(*) FROM pragma_table_info('trial') WHERE name = 'note'"), 1);
  EXPECT_TRUE(absl::IsUnimplemented(OpenIt().status())) << "the older program took it";
}

TEST_F(SqliteSchema, AMigrationIsWholeOrNotAtAll) {
  ASSERT_TRUE((*OpenIt())->Commit(CreationNamed("mnist")).ok());
  const Status status =
      OpenWith(Longer("CREATE TABLE half(a INTEGER) STRICT; ALTER TABLE no_such ADD b")).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), HasSubstr("schema version 2"));
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
