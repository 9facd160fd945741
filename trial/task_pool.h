// A few threads for what takes long: started when first needed, so that a program without such
// work has none of them, and no more than work is waiting. What must not be cut off watches a flag
// of its own: nothing here interrupts it. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shirabe::trial {

class TaskPool {
 public:
  explicit TaskPool(size_t max_threads) : max_threads_(max_threads) {}
  // Drops what has not begun and waits for what has.
  ~TaskPool();

  // Runs it soon, in the order of the calls, beside what runs already. It may call Run.
  void Run(std::function<void()> work);

 private:
  void Loop();

  const size_t max_threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // These are guarded by mutex_.
  std::deque<std::function<void()>> queue_;
  size_t idle_ = 0;  // threads that wait
  bool over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace shirabe::trial
