// The connections on which a PostgreSQL store reads: as many as there are reads at once, up to a
// limit, for the server has a limit of its own. A caller waits while all are taken, until one
// is given back. Held by db/postgres/postgres_store, and lives as long; thread-safe.
//
// After a restart of the server all of them are dead, which shows only when they are used. So the
// first that breaks takes all idle ones with it, and the read is made again on a new one: callers
// do not notice a server that is away for less than their patience.
#pragma once

#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "db/postgres/postgres_connection.h"

namespace shirabe::db {

class PostgresPool {
 public:
  PostgresPool(PostgresOptions options, int limit) : options_(std::move(options)), limit_(limit) {}

  // Runs `read` with a connection, and again with another one if that one breaks, until `patience`
  // has passed: a read changes nothing, so it may be repeated.
  template <class Read>
  auto Run(const Read& read, absl::Duration patience) -> decltype(read(nullptr)) {
    const absl::Duration deadline = Deadline(patience);
    for (int failures = 0;; ++failures) {
      bool again = false;
      auto db = Acquire(deadline, &again);
      if (db.ok()) {
        auto result = read(db->get());
        again = (*db)->lost();
        Release(*std::move(db));
        if (!again || !Pause(failures, deadline)) return result;
      } else if (!again || !Pause(failures, deadline)) {
        return db.status();
      }
    }
  }

 private:
  static absl::Duration Deadline(absl::Duration patience);
  // An idle connection or a new one; `*again` if there is none but trying again may help, as it
  // does not with a wrong password.
  StatusOr<std::unique_ptr<PostgresConnection>> Acquire(absl::Duration deadline, bool* again);
  void Release(std::unique_ptr<PostgresConnection> db);
  // A moment, longer with each failure; false if the deadline has passed.
  bool Pause(int failures, absl::Duration deadline);

  const PostgresOptions options_;
  const int limit_;
  Mutex mutex_;
  CondVar returned_;
  std::vector<std::unique_ptr<PostgresConnection>> idle_ ABSL_GUARDED_BY(mutex_);
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace shirabe::db
