#include "db/postgres/postgres_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "db/postgres/postgres_writer.h"

namespace shirabe::db {

absl::Duration PostgresPool::Deadline(absl::Duration patience) {
  return RealClock()->Monotonic() + patience;
}

StatusOr<std::unique_ptr<PostgresConnection>> PostgresPool::Acquire(absl::Duration deadline,
                                                                    bool* again) {
  {
    MutexLock lock(mutex_);
    const absl::Duration left =
        std::max(deadline - RealClock()->Monotonic(), absl::Milliseconds(1));
    if (!returned_.WaitFor(lock, left, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
          return taken_ < limit_;
        })) {
      return absl::UnavailableError(absl::StrCat("database ", options_.address.shown, ": all ",
                                                 limit_, " connections are busy: try again"));
    }
    ++taken_;
    if (!idle_.empty()) {
      std::unique_ptr<PostgresConnection> db = std::move(idle_.back());
      idle_.pop_back();
      return db;
    }
  }
  PostgresError why;
  auto db = PostgresConnection::Open(options_, &why);
  if (db.ok()) return db;
  *again = absl::IsUnavailable(db.status()) && IsConnectionLost(why);
  const MutexLock lock(mutex_);
  --taken_;
  returned_.NotifyOne();
  return db.status();
}

void PostgresPool::Release(std::unique_ptr<PostgresConnection> db) {
  std::vector<std::unique_ptr<PostgresConnection>> dead;  // closed without the lock
  const MutexLock lock(mutex_);
  --taken_;
  if (db->usable()) {
    idle_.push_back(std::move(db));
  } else if (db->lost()) {
    dead.swap(idle_);
  }
  returned_.NotifyOne();
}

bool PostgresPool::Pause(int failures, absl::Duration deadline) {
  const absl::Duration left = deadline - RealClock()->Monotonic();
  if (left <= absl::ZeroDuration()) return false;
  if (failures == 0) return true;  // a new connection may do at once
  MutexLock lock(mutex_);
  const absl::Duration pause = std::min(left, PostgresBackoff(failures));
  returned_.WaitFor(lock, pause, [] { return false; });
  return true;
}

}  // namespace shirabe::db
