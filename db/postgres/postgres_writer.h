// The one thread of a process that writes to a PostgreSQL database. While it waits for the server,
// more writes queue up, and the next transaction takes all of them: one round trip to read, one to
// write, one fsync, for all.
//
// A server that stops and starts again is met with patience: the transaction is made again on a new
// connection for a few seconds, then its writes fail with kUnavailable. If the connection breaks
// after COMMIT was sent, it is not known at first whether it took effect. Each caller then finds
// that out by itself, while the writer goes on with the next: a write is neither lost nor made
// twice. If the server stays away, kUnavailable says that it is not known.
//
// Thread-safe; the destructor finishes what was queued.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/file_io.h"
#include "base/mutex.h"
#include "db/postgres/postgres_commit.h"
#include "db/postgres/postgres_connection.h"
#include "db/store.h"

namespace shirabe::db {

struct PostgresWriterOptions {
  PostgresOptions connection{};
  int64_t version = 0;                                 // of the schema
  absl::Duration patience = absl::Seconds(3);          // with a server that is away
  absl::Duration resolve_timeout = absl::Seconds(30);  // to learn what became of a COMMIT
};

class PostgresWriter {
 public:
  explicit PostgresWriter(PostgresWriterOptions options);
  ~PostgresWriter();

  // Fills the request in; its status is that of the write.
  void Run(PostgresRequest* request);

 private:
  struct Waiting {
    PostgresRequest* request;
    // The transaction in which it may have taken effect; 0: there is none.
    int64_t session = 0;
    int64_t sequence = 0;
    bool done = false;
  };
  using Group = std::vector<Waiting*>;

  void Loop();
  Group NextGroup();
  void Execute(const Group& group);
  void ExecuteAlone(const Group& group);
  Status Try(const Group& group, bool* again);
  Status Connect(bool* again);
  void Pause(int failures);
  StatusOr<bool> ResolveUnknownCommit(const Waiting& waiting);

  const PostgresWriterOptions options_;
  PostgresSession session_;  // the writer's thread alone
  Mutex mutex_;
  CondVar queued_;
  CondVar finished_;
  CondVar stopped_;
  Group queue_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// How long to wait before the next of several attempts: 10 ms, 20 ms, … up to half a second.
absl::Duration PostgresBackoff(int failures);

// Hears of every Commit to a PostgreSQL database, whichever server made it, through LISTEN on a
// connection of its own, and raises the store's signal with its revision. Nothing is sent while
// nothing happens, however many threads wait, but for a look every few seconds: a connection can be
// dead without anyone having said so. Started by the first who waits; thread-safe; stops in its
// destructor, in which no thread may wait any more.
class PostgresListener {
 public:
  // `signal` must outlive it.
  PostgresListener(PostgresOptions options, ChangeSignal* signal);
  ~PostgresListener();

 private:
  void Loop();
  // Until the connection breaks or the listener stops.
  Status Listen(bool* connected);
  Status RaiseRevision(PostgresConnection* db);
  bool Stopped(absl::Duration wait) const;

  const PostgresOptions options_;
  ChangeSignal* const signal_;
  Fd stop_;  // becomes readable when it is time to stop
  std::thread thread_;
};

}  // namespace shirabe::db
