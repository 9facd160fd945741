// The writer's thread: what fails is undone alone, and nothing is acknowledged that is not kept.
#include "db/sqlite/sqlite_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "base/file_io.h"
#include "base/open_beneath.h"
#include "db/sqlite/sqlite_schema.h"

namespace shirabe::db {
namespace {

class SqliteWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/shirabe-writer-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    auto db = Connect();
    ASSERT_TRUE(PrepareSchema(db.get(), CurrentSchema(), false).ok());
    ASSERT_TRUE(db->Execute("CREATE TABLE t(a INTEGER PRIMARY KEY) STRICT").ok());
    writer_ = std::make_unique<SqliteWriter>(std::move(db), CurrentSchema().size());
  }
  void TearDown() override {
    writer_.reset();
    ASSERT_TRUE(RemoveAll(folder_).ok());
  }

  std::unique_ptr<SqliteConnection> Connect() {
    auto db =
        SqliteConnection::Open({.path = folder_ + "/w.db", .mode = ConnectOptions::Mode::kCreate});
    CHECK(db.ok());
    return *std::move(db);
  }
  static Status Insert(int64_t a, WriteSession* session) {
    ++session->revision;
    return session->db->Prepare("INSERT INTO t VALUES (?)").Bind(a).Run();
  }
  int64_t Read(const std::string& sql) { return *Connect()->ReadInt(sql); }

  int64_t RunFourTogether();

  std::string folder_;
  int64_t next_ = 1;  // on the writer's thread
  std::unique_ptr<SqliteWriter> writer_;
};

TEST_F(SqliteWriterTest, UndoesOnlyWhatFails) {
  constexpr int kThreads = 8;
  constexpr int kEach = 20;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < kEach; ++i) {
        const int64_t a = thread * 1000 + i;
        const bool fails = i % 2 == 1;
        const Status status = writer_->Run([&](WriteSession* session) {
          RETURN_IF_ERROR(Insert(a, session));
          return fails ? absl::AbortedError("refused") : absl::OkStatus();
        });
        EXPECT_EQ(absl::IsAborted(status), fails) << status;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Read("SELECT count(*) FROM t"), kThreads * kEach / 2);
  EXPECT_EQ(Read("SELECT count(*) FROM t WHERE a % 2 = 1"), 0);
  EXPECT_EQ(Read("SELECT revision FROM store"), kThreads * kEach / 2);
}

// Runs one piece of work that waits until three others are about to queue up behind it. Returns
// the most commits that a piece of work saw unpublished, its own included: more than 1 if a
// transaction was shared.
int64_t SqliteWriterTest::RunFourTogether() {
  std::mutex mutex;
  std::condition_variable coming;
  int others = 0;
  int64_t most = 0;
  const auto note = [&](WriteSession* session) {
    const int64_t published = Read("SELECT revision FROM store");
    most = std::max(most, session->revision - published);
    return absl::OkStatus();
  };
  const auto wait_for_others = [&](WriteSession* session) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(coming.wait_for(lock, std::chrono::seconds(20), [&] { return others == 3; }));
    return Insert(next_++, session);
  };
  std::vector<std::thread> threads;
  threads.emplace_back([&] { EXPECT_TRUE(writer_->Run(wait_for_others).ok()); });
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      {
        std::lock_guard lock(mutex);
        ++others;
      }
      coming.notify_all();
      const Status status = writer_->Run([&](WriteSession* session) {
        RETURN_IF_ERROR(Insert(next_++, session));
        return note(session);
      });
      EXPECT_TRUE(status.ok()) << status;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return most;
}

TEST_F(SqliteWriterTest, QueuedWorkSharesATransaction) {
  // Whether the others are queued in time is up to the scheduler, so it may take several rounds.
  int rounds = 1;
  while (RunFourTogether() < 3 && rounds < 200) ++rounds;
  EXPECT_LT(rounds, 200) << "no three pieces of work ever shared a transaction";
  EXPECT_EQ(Read("SELECT count(*) FROM t"), 4 * rounds);
  EXPECT_EQ(Read("SELECT revision FROM store"), 4 * rounds);
}

TEST_F(SqliteWriterTest, SurvivesALostTransaction) {
  // As SQLite does it by itself when the disk is full.
  const Status lost = writer_->Run([](WriteSession* session) {
    RETURN_IF_ERROR(Insert(1, session));
    RETURN_IF_ERROR(session->db->Execute("ROLLBACK"));
    return absl::ResourceExhaustedError("disk full");
  });
  EXPECT_TRUE(absl::IsResourceExhausted(lost)) << lost;
  EXPECT_EQ(Read("SELECT count(*) FROM t"), 0);
  EXPECT_TRUE(writer_->Run([](WriteSession* session) { return Insert(2, session); }).ok());
  EXPECT_EQ(Read("SELECT a FROM t"), 2);
  EXPECT_EQ(Read("SELECT revision FROM store"), 1);
}

// The ids of metrics that were noted on the way are not those of the file any more.
TEST_F(SqliteWriterTest, ForgetsIdsWithTheWorkThatWasUndone) {
  const auto ids = [this](const std::function<Status(WriteSession*)>& how) {
    EXPECT_FALSE(writer_
                     ->Run([&](WriteSession* session) {
                       session->metrics["loss"] = 7;
                       return how(session);
                     })
                     .ok());
    size_t known = 0;
    EXPECT_TRUE(writer_
                    ->Run([&](WriteSession* session) {
                      known = session->metrics.size();
                      return Insert(next_++, session);
                    })
                    .ok());
    return known;
  };
  EXPECT_EQ(ids([](WriteSession*) { return absl::AbortedError("refused"); }), 0u);
  EXPECT_EQ(ids([](WriteSession* session) {
              RETURN_IF_ERROR(session->db->Execute("ROLLBACK"));  // as SQLite does on a full disk
              return absl::ResourceExhaustedError("disk full");
            }),
            0u);
  // Both pieces of work went well, and the transaction did not.
  const Status lost = writer_->Run([](WriteSession* session) {
    session->metrics["loss"] = 7;
    return session->db->Execute("DROP TABLE store");
  });
  EXPECT_FALSE(lost.ok());
  size_t known = 0;
  EXPECT_TRUE(writer_
                  ->Run([&](WriteSession* session) {
                    known = session->metrics.size();
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(known, 0u);
}

TEST_F(SqliteWriterTest, CountersFollowOtherProcesses) {
  ASSERT_TRUE(writer_->Run([](WriteSession* session) { return Insert(1, session); }).ok());
  ASSERT_TRUE(Connect()->Execute("UPDATE store SET revision = 41").ok());
  int64_t seen = 0;
  ASSERT_TRUE(writer_
                  ->Run([&](WriteSession* session) {
                    RETURN_IF_ERROR(Insert(2, session));
                    seen = session->revision;
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(seen, 42);
}

}  // namespace
}  // namespace shirabe::db
