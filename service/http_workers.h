// Threads that run what blocks: handlers call the store, and wait. They are made as they are
// needed, up to a limit, and end with the object. Made by the server, one object for what is quick
// and one for what may wait, so that those who wait do not hold up the others. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shirabe::service {

class Workers {
 public:
  using Work = std::function<void()>;

  struct Limits {
    int threads = 1;
    size_t queue = 1;  // works that may wait for a thread
  };
  explicit Workers(Limits limits) : limits_(limits) {}
  // Finishes what was taken.
  ~Workers();

  // In one of the threads, soon; in the order of the calls where all are busy. False, and then it
  // is not run, if too much waits already.
  bool Run(Work work);

 private:
  void Serve();

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Work> queue_;
  std::vector<std::thread> threads_;
  int idle_ = 0;  // threads that wait for work
  bool ending_ = false;
};

}  // namespace shirabe::service
