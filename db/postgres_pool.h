// The connections on which a PostgreSQL store reads: as many as there are reads at once, up to a
// limit, for the server has a limit of its own. After a restart of the server all of them are dead,
// which shows when they are used; then they are dropped and made anew. Thread-safe.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/time/time.h"
#include "db/postgres_connection.h"

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
      auto db = Take(deadline, &again);
      if (db.ok()) {
        auto result = read(db->get());
        again = (*db)->lost();
        GiveBack(*std::move(db));
        if (!again || !Pause(failures, deadline)) return result;
      } else if (!again || !Pause(failures, deadline)) {
        return db.status();
      }
    }
  }

 private:
  static absl::Duration Deadline(absl::Duration patience);
  // `*again` if it can be tried again.
  StatusOr<std::unique_ptr<PostgresConnection>> Take(absl::Duration deadline, bool* again);
  void GiveBack(std::unique_ptr<PostgresConnection> db);
  // A moment, longer with each failure; false if the deadline has passed.
  bool Pause(int failures, absl::Duration deadline);

  const PostgresOptions options_;
  const int limit_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<PostgresConnection>> idle_;
  int taken_ = 0;
};

}  // namespace shirabe::db
