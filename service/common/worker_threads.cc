#include "service/common/worker_threads.h"

#include <utility>

namespace shirabe::service {

Workers::~Workers() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  more_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

bool Workers::Run(const std::string& caller, Work work) {
  const MutexLock lock(mutex_);
  if (ending_ || queued_ >= limits_.queue) return false;
  Lane& lane = lanes_[caller];
  if (lane.queue.size() >= limits_.caller_queue) return false;
  lane.queue.push_back(std::move(work));
  ++queued_;
  MakeReady(caller, lane);
  return true;
}

void Workers::MakeReady(const std::string& caller, Lane& lane) {
  if (lane.ready || lane.queue.empty() || lane.running >= limits_.caller_threads) return;
  lane.ready = true;
  ready_.push_back(caller);
  const bool all_busy = ready_.size() > static_cast<size_t>(idle_);
  if (all_busy && static_cast<int>(threads_.size()) < limits_.threads) {
    threads_.emplace_back([this] { Serve(); });
  } else {
    more_.NotifyOne();
  }
}

void Workers::Serve() {
  MutexLock lock(mutex_);
  for (;;) {
    ++idle_;
    more_.Wait(lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !ready_.empty() || (ending_ && queued_ == 0);
    });
    --idle_;
    if (ready_.empty()) return;
    const std::string caller = std::move(ready_.front());
    ready_.pop_front();
    Lane& lane = lanes_.at(caller);
    lane.ready = false;
    {
      const Work work = std::move(lane.queue.front());
      lane.queue.pop_front();
      --queued_;
      ++lane.running;
      MakeReady(caller, lane);
      lock.unlock();
      work();
    }
    lock.lock();
    --lane.running;
    MakeReady(caller, lane);
    if (lane.running == 0 && lane.queue.empty()) lanes_.erase(caller);
    if (ending_) more_.NotifyAll();
  }
}

}  // namespace shirabe::service
