#include "service/http_workers.h"

#include <utility>

namespace shirabe::service {

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Workers::Run(Work work) {
  std::lock_guard lock(mutex_);
  if (ending_ || queue_.size() >= limits_.queue) return false;
  queue_.push_back(std::move(work));
  const bool all_busy = queue_.size() > static_cast<size_t>(idle_);
  if (all_busy && static_cast<int>(threads_.size()) < limits_.threads) {
    threads_.emplace_back([this] { Serve(); });
  } else {
    more_.notify_one();
  }
  return true;
}

void Workers::Serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    more_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty()) return;
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace shirabe::service
