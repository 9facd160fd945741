#include "trial/task_pool.h"

#include <utility>

namespace shirabe::trial {

TaskPool::~TaskPool() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
    queue_.clear();
    threads.swap(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void TaskPool::Run(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    if (over_) return;
    queue_.push_back(std::move(work));
    if (queue_.size() > idle_ && threads_.size() < max_threads_) {
      threads_.emplace_back([this] { Loop(); });
    }
  }
  changed_.notify_one();
}

void TaskPool::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return over_ || !queue_.empty(); });
    --idle_;
    if (over_) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace shirabe::trial
