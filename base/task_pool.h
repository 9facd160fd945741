// A few threads for what takes long: started when first needed, so that a program without such
// work has none of them, and no more than work is waiting. What must not be cut off watches a flag
// of its own: nothing here interrupts it. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace shirabe {

class TaskPool {
 public:
  explicit TaskPool(size_t max_threads) : max_threads_(max_threads) {}
  ~TaskPool() { End(); }

  // Drops what has not begun, and what comes, and waits for what has begun.
  void End();

  // Runs it soon, in the order of the calls, beside what runs already. It may call Run.
  void Run(std::function<void()> work);

 private:
  void Loop();

  const size_t max_threads_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;  // threads that wait
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe
