// Threads that run what blocks: handlers call the store, and wait. They are made as they are
// needed, up to a limit, and end with the object. Made by the server, one object for what is quick
// and one for what may take long, so that the latter do not hold up the others. Callers take turns,
// and none of them gets more than a part of the threads and of the queue, so that none of them
// holds up the others either. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace shirabe::service {

class Workers {
 public:
  using Work = std::function<void()>;

  struct Limits {
    int threads = 1;
    size_t queue = 1;         // works that may wait for a thread
    int caller_threads = 1;   // of one caller
    size_t caller_queue = 1;  // of one caller
  };
  explicit Workers(Limits limits) : limits_(limits) {}
  // Finishes what was taken.
  ~Workers();

  // In one of the threads, soon; of one caller in the order of the calls. False, and then it is not
  // run, if too much waits already.
  bool Run(const std::string& caller, Work work);

 private:
  // What one caller wants: forgotten when there is nothing of it.
  struct Lane {
    std::deque<Work> queue;
    int running = 0;
    bool ready = false;  // in ready_
  };
  void Serve();
  void MakeReady(const std::string& caller, Lane& lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  Mutex mutex_;
  CondVar more_;
  std::map<std::string, Lane> lanes_ ABSL_GUARDED_BY(mutex_);
  // Callers whose turn comes: they have work, and may run it.
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);
  size_t queued_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  int idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that wait for work
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace shirabe::service
