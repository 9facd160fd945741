#include "base/task_pool.h"

#include <utility>

namespace shirabe {

void TaskPool::End() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    over_ = true;
    queue_.clear();
    threads.swap(threads_);
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads) thread.join();
}

void TaskPool::Run(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    if (over_) return;
    queue_.push_back(std::move(work));
    if (queue_.size() > idle_ && threads_.size() < max_threads_) {
      threads_.emplace_back([this] { Loop(); });
    }
  }
  changed_.NotifyOne();
}

void TaskPool::Loop() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.Wait(
        lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return over_ || !queue_.empty(); });
    --idle_;
    if (over_) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace shirabe
