// Follows the store once for everybody: one thread waits for changes, remembers the newest of them,
// and tells those who follow (event streams, metrics) that there is something new. Made by the
// server before its listeners open; lives longer than they do. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/client.h"

namespace shirabe::service {

// Waiting in handlers that the end of the server interrupts. One object a server; thread-safe.
class ShutdownWait {
 public:
  // False, at once, if the server stops.
  bool Wait(absl::Duration time) {
    MutexLock lock(mutex_);
    return !stopped_.WaitFor(lock, time,
                             [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return over_; });
  }
  // From now on no call of Wait waits, those under way included.
  void End() {
    const MutexLock lock(mutex_);
    over_ = true;
    stopped_.NotifyAll();
  }
  bool over() const {
    const MutexLock lock(mutex_);
    return over_;
  }

 private:
  mutable Mutex mutex_;
  CondVar stopped_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
};

class ChangeHub {
 public:
  // Told of every batch of changes, in its thread: quickly, or everybody waits.
  using Listener = std::function<void(const std::vector<db::Change>&)>;

  // The client outlives it.
  explicit ChangeHub(client::Client& client);
  ~ChangeHub();

  // Until Unlisten, with what this returned; afterwards the listener is not at work any more.
  int Listen(Listener listener);
  void Unlisten(int id);
  void Start();

  // The revision up to which the changes are known here.
  int64_t revision() const;
  // What has changed after a revision, in order: from memory, or from the store if that is too long
  // ago. kOutOfRange for a revision that the store has not reached: it is another store now.
  StatusOr<std::vector<db::Change>> After(int64_t revision);
  // Why the store could not be read the last time; OK if it could.
  Status health() const;

 private:
  void Run();
  Status Refresh();

  client::Client& client_;
  Mutex listeners_mutex_;
  // Guarded while they are called, too.
  std::map<int, Listener> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  int last_id_ ABSL_GUARDED_BY(listeners_mutex_) = 0;
  ShutdownWait shutdown_wait_;
  mutable Mutex mutex_;
  std::deque<db::Change> recent_ ABSL_GUARDED_BY(mutex_);  // all those after floor_
  int64_t floor_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;
  Status health_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace shirabe::service
