// The PostgreSQL store and what it finds in a database: other people's tables, newer and older
// ones, damage; who may not come in; and that no statement reads a whole table.
#include "db/postgres/postgres_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "db/postgres/postgres_reader.h"
#include "db/postgres/postgres_snapshot.h"
#include "db/postgres/postgres_state.h"
#include "tests/db/postgres_server.h"

namespace shirabe::db {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const ExperimentKey kPostgresStoreKey{"default", "found"};

class PostgresStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (SharedPostgres() == nullptr) {
      GTEST_SKIP() << "there is no PostgreSQL here (package postgresql-15)";
    }
    database_ = SharedPostgres()->NewDatabase();
  }

  StatusOr<std::unique_ptr<Store>> OpenIt(PostgresStoreOptions options = {}) const {
    if (options.address.empty()) options.address = SharedPostgres()->Address(database_);
    return OpenPostgres(options);
  }
  Status Refusal(PostgresStoreOptions options = {}) const { return OpenIt(options).status(); }
  void Execute(const std::string& sql) const {
    auto db = SharedPostgres()->Connect(database_);
    ASSERT_TRUE(db.ok()) << db.status();
    const Status status = (*db)->Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
  static Batch Creation() {
    Batch batch{.experiment = kPostgresStoreKey};
    batch.put.emplace();
    batch.put->record.mutable_metadata()->set_namespace_(kPostgresStoreKey.ns);
    batch.put->record.mutable_metadata()->set_name(kPostgresStoreKey.name);
    return batch;
  }

  std::string database_;
};

TEST_F(PostgresStoreTest, CreatesItsTablesOnceWhoeverComesFirst) {
  std::vector<std::thread> threads;
  std::vector<Status> opened(6);
  for (Status& status : opened) {
    threads.emplace_back([&] { status = Refusal(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : opened) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(*(*OpenIt())->Revision(), 0);
}

TEST_F(PostgresStoreTest, AcceptsBothSchemesAndUris) {
  const std::string rest = SharedPostgres()->Address(database_);
  EXPECT_TRUE(Open("postgres:" + rest).ok());
  EXPECT_TRUE(Open("postgresql:" + rest).ok());
  const std::string folder = rest.substr(5, rest.find(' ') - 5);
  const auto uri = Open("postgresql://postgres@/" + database_ + "?host=" + folder);
  EXPECT_TRUE(uri.ok()) << uri.status();
}

TEST_F(PostgresStoreTest, ReadsWithoutCreating) {
  const Status empty = Refusal({.read_only = true});
  EXPECT_TRUE(absl::IsNotFound(empty)) << empty;
  EXPECT_THAT(Message(empty), HasSubstr("is empty"));
  ASSERT_TRUE((*OpenIt())->Commit(Creation()).ok());
  const auto reader = OpenIt({.read_only = true});
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE((*reader)->GetExperiment(kPostgresStoreKey).ok());
  EXPECT_TRUE(absl::IsPermissionDenied((*reader)->Commit(Creation()).status()));
}

TEST_F(PostgresStoreTest, LeavesOtherPeoplesTablesAlone) {
  Execute("CREATE SCHEMA shirabe; CREATE TABLE shirabe.store(price int)");
  const Status status = Refusal();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("another program"));
}

TEST_F(PostgresStoreTest, MigratesOlderTablesAndRefusesNewerOnes) {
  PostgresSteps newer = CurrentPostgresSchema();
  newer.push_back("CREATE TABLE added(id int)");
  const auto old = OpenIt();
  ASSERT_TRUE((*old)->Commit(Creation()).ok());
  const Status ahead = Refusal({.read_only = true, .schema = newer});
  EXPECT_TRUE(absl::IsFailedPrecondition(ahead)) << ahead;
  ASSERT_TRUE(OpenIt({.schema = newer}).ok());

  const Status open = Refusal();
  EXPECT_EQ(open.code(), absl::StatusCode::kUnimplemented) << open;
  EXPECT_THAT(Message(open), HasSubstr("schema version 3"));
  // One that was open meanwhile must not write what a newer program no longer understands.
  const Status write =
      (*old)->Commit({.experiment = kPostgresStoreKey, .delete_experiment = true}).status();
  EXPECT_EQ(write.code(), absl::StatusCode::kUnimplemented) << write;
}

TEST_F(PostgresStoreTest, AFailedMigrationLeavesEverythingAsItWas) {
  ASSERT_TRUE((*OpenIt())->Commit(Creation()).ok());
  PostgresSteps broken = CurrentPostgresSchema();
  broken.push_back("DROP TABLE trial; SELECT 1 / 0");
  EXPECT_FALSE(Refusal({.schema = broken}).ok());
  EXPECT_TRUE((*OpenIt())->ListTrials({.experiment = kPostgresStoreKey}).ok());
}

TEST_F(PostgresStoreTest, NamesDamage) {
  const auto store = *OpenIt();
  ASSERT_TRUE(store->Commit(Creation()).ok());
  Execute("UPDATE shirabe.experiment SET body = '\\xffff'");
  const Status body = store->GetExperiment(kPostgresStoreKey).status();
  EXPECT_EQ(body.code(), absl::StatusCode::kDataLoss) << body;
  Execute("DROP TABLE shirabe.trial");
  const Status table = store->ListTrials({.experiment = kPostgresStoreKey}).status();
  EXPECT_EQ(table.code(), absl::StatusCode::kDataLoss) << table;
  Execute("DELETE FROM shirabe.store");
  const Status row =
      store->Commit({.experiment = kPostgresStoreKey, .delete_experiment = true}).status();
  EXPECT_EQ(row.code(), absl::StatusCode::kDataLoss) << row;
  EXPECT_EQ(Refusal().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PostgresStoreTest, SaysWhoMayNotComeIn) {
  const Status database = Refusal({.address = SharedPostgres()->Address("nowhere")});
  EXPECT_TRUE(absl::IsNotFound(database)) << database;
  EXPECT_THAT(Message(database), HasSubstr("createdb"));
  const std::string rest = SharedPostgres()->Address(database_);
  const Status user = Refusal({.address = rest + " user=nobody_at_all password=sesame"});
  EXPECT_TRUE(absl::IsPermissionDenied(user)) << user;
  EXPECT_THAT(Message(user), Not(HasSubstr("sesame")));
  Execute("CREATE ROLE guest LOGIN; REVOKE CREATE ON DATABASE " + database_ + " FROM public");
  const Status guest = Refusal({.address = rest + " user=guest"});
  EXPECT_TRUE(absl::IsPermissionDenied(guest)) << guest;
  EXPECT_THAT(Message(guest), HasSubstr("grant CREATE"));
  const absl::Duration began = RealClock()->Monotonic();
  const Status gone = Refusal({.address = "host=/nowhere", .patience = absl::Milliseconds(200)});
  EXPECT_TRUE(absl::IsUnavailable(gone)) << gone;
  EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(5));
}

// One at fault does not spoil the transaction that it shares with others.
TEST_F(PostgresStoreTest, AKeyThatCannotBeStoredIsRefusedAlone) {
  const auto store = *OpenIt();
  ASSERT_TRUE(store->Commit(Creation()).ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      Batch batch = Creation();
      batch.experiment.name = i % 2 == 0 ? std::string("nul\0byte", 8) : absl::StrCat("e", i);
      batch.put->record.mutable_metadata()->set_name(batch.experiment.name);
      for (int round = 0; round < 5; ++round) {
        const Status status = store->Commit(batch).status();
        if (i % 2 == 0) {
          EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
        } else {
          EXPECT_TRUE(round == 0 ? status.ok() : absl::IsAborted(status)) << status;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->ListExperiments("")->size(), 4u);
}

// The number of a statement's parameters: $1, $2, ….
int CountParams(const std::string& sql) {
  int most = 0;
  for (size_t at = sql.find('$'); at != std::string::npos; at = sql.find('$', at + 1)) {
    most = std::max(most, sql[at + 1] - '0');
  }
  return most;
}

std::string Plan(PostgresConnection& db, const std::string& sql) {
  std::string nulls;
  for (int i = 0; i < CountParams(sql); ++i) absl::StrAppend(&nulls, i == 0 ? "(" : ", ", "NULL");
  EXPECT_TRUE(db.Execute("PREPARE planned AS " + sql).ok()) << sql;
  // The text differs each time, or it would be prepared itself.
  static int count = 0;
  const auto plan = db.Query(
      absl::StrCat("EXPLAIN EXECUTE planned", nulls, nulls.empty() ? "" : ")", " -- ", ++count));
  EXPECT_TRUE(plan.ok()) << sql << ": " << plan.status();
  std::string text;
  for (int row = 0; row < plan->rows(); ++row) absl::StrAppend(&text, plan->Bytes(row, 0), "\n");
  EXPECT_TRUE(db.Execute("DEALLOCATE planned").ok());
  return text;
}

// Plans are made once, by sessions that may have begun with empty tables: they must be right then.
TEST_F(PostgresStoreTest, NoStatementReadsAWholeTable) {
  ASSERT_TRUE(OpenIt().ok());
  auto opened = SharedPostgres()->Connect(database_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  PostgresConnection& db = **opened;
  std::vector<PostgresStatement> statements = PostgresReadStatements();
  for (const auto& statement : PostgresState::Statements()) statements.push_back(statement);
  for (const auto& statement : PostgresSnapshotStatements()) statements.push_back(statement);
  for (const bool filled : {false, true}) {
    for (const auto& [name, sql, index] : statements) {
      const std::string plan = Plan(db, sql);
      EXPECT_THAT(plan, Not(HasSubstr("Seq Scan"))) << name << "\n" << plan;
      EXPECT_THAT(plan, HasSubstr(index)) << name << "\n" << plan;
      EXPECT_THAT(plan, Not(HasSubstr("Join Filter"))) << name << "\n" << plan;
    }
    if (filled) break;
    Execute(
        "SET search_path = shirabe;"
        "INSERT INTO name(id, namespace, name) VALUES (1, 'default', 'found');"
        "INSERT INTO name(id, namespace, name) SELECT n, 'other', n FROM generate_series(2, 999) n;"
        "INSERT INTO experiment SELECT n, 1, '' FROM generate_series(1, 999) n;"
        "INSERT INTO trial SELECT 1, n, n % 1000 = 0, n, '' FROM generate_series(1, 100000) n;"
        "INSERT INTO attempt SELECT 1, n, 1, n % 1000 = 0, n, '' FROM generate_series(1, 100000) n;"
        "ANALYZE");
  }
  // And they are as quick as that promises.
  const auto store = *OpenIt();
  const absl::Duration began = RealClock()->Monotonic();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(
        store->ListTrials({.experiment = kPostgresStoreKey, .after_number = 99'000, .limit = 50})
            ->size(),
        50u);
    EXPECT_EQ(store->ListTrials({.experiment = kPostgresStoreKey, .live_only = true})->size(),
              100u);
    EXPECT_EQ(store->ListTrials({.experiment = kPostgresStoreKey, .changed_after = 99'990})->size(),
              10u);
    EXPECT_EQ(store->Changes(99'000, 10)->size(), 10u);
    EXPECT_EQ(store->ListAttempts({.experiment = kPostgresStoreKey, .open_only = true})->size(),
              100u);
  }
  EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(10));
}

}  // namespace
}  // namespace shirabe::db
