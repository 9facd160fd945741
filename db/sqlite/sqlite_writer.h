// The one thread that writes to an SQLite file, and what makes durable writing fast: while it waits
// for the disk, more work queues up, and the next transaction takes all of that, with one fsync.
//
// Each piece of work runs in its own savepoint: if it fails it is undone alone, and the others do
// not notice. No caller is told of success before the transaction is on the disk; if that fails,
// all of its work fails. Thread-safe; the destructor finishes what was queued.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "db/sqlite/sqlite.h"

namespace shirabe::db {

// What a piece of work sees: the connection, inside a transaction, and the store's two counters.
struct WriteSession {
  SqliteConnection* db = nullptr;
  int64_t revision = 0;  // of the newest Commit, those of this transaction included
  int64_t last_id = 0;   // of events and intents
  std::unordered_map<std::string, int64_t> metrics;  // ids known to this process
};

class SqliteWriter {
 public:
  // Writes nothing unless it succeeds. Must not block on anything but the database.
  using Work = std::function<Status(WriteSession*)>;

  // `db` was opened for writing and its schema has this version.
  SqliteWriter(std::unique_ptr<SqliteConnection> db, int64_t version);
  ~SqliteWriter();

  // Runs the work and returns once it is durable, or undone. Called on the caller's behalf by the
  // writer's thread, perhaps together with the work of others.
  Status Run(const Work& work);

 private:
  struct Request {
    const Work* work;
    Status status;
    bool done = false;
  };

  void Loop();
  std::vector<Request*> NextGroup();
  void Execute(const std::vector<Request*>& group);
  Status ExecuteAll(const std::vector<Request*>& group);
  Status Begin();
  Status RunOne(Request* request);
  Status End(const std::vector<Request*>& group);

  const std::unique_ptr<SqliteConnection> db_;
  const int64_t version_;
  WriteSession session_;  // the writer's thread alone
  Mutex mutex_;
  CondVar queued_;
  CondVar finished_;
  std::vector<Request*> queue_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace shirabe::db
