// Hears of every Commit to a PostgreSQL database, whichever server made it, through LISTEN on a
// connection of its own, and raises the store's signal with its revision. Nothing is sent while
// nothing happens, however many threads wait, but for a look every few seconds: a connection can be
// dead without anyone having said so. Started by the first who waits; thread-safe; stops in its
// destructor, in which nobody may wait any more.
#pragma once

#include <thread>

#include "base/file.h"
#include "db/change_signal.h"
#include "db/postgres_connection.h"

namespace shirabe::db {

class PostgresListener {
 public:
  // `signal` must outlive it.
  PostgresListener(PostgresOptions options, ChangeSignal* signal);
  ~PostgresListener();

 private:
  void Loop();
  // Until the connection breaks or the listener stops.
  Status Listen(bool* connected);
  Status Look(PostgresConnection* db);
  bool Stopped(absl::Duration wait) const;

  const PostgresOptions options_;
  ChangeSignal* const signal_;
  Fd stop_;  // becomes readable when it is time to stop
  std::thread thread_;
};

}  // namespace shirabe::db
