// How the threads of one process learn that their store has a newer Commit. Held by each store:
// whoever commits raises the signal, whoever follows the feed waits for it. Thread-safe; must
// outlive those who wait.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "absl/time/time.h"
#include "db/store.h"

namespace shirabe::db {

class ChangeSignal {
 public:
  // There is a Commit with this revision. An older one than is known changes nothing.
  void Raise(int64_t revision);
  // Until it was raised above `after`, or `timeout` has passed. Returns the newest revision known.
  int64_t Await(int64_t after, absl::Duration timeout);

 private:
  std::mutex mutex_;
  std::condition_variable raised_;
  int64_t newest_ = 0;
};

// Store::AwaitChange for a store that other processes write as well, who raise no signal here: it
// asks for the revision ten times a second, and at once when `signal` is raised.
StatusOr<int64_t> AwaitByAsking(Store* store, ChangeSignal* signal, int64_t after,
                                absl::Duration timeout);

}  // namespace shirabe::db
