#include "trial/wakeup_timer.h"

#include <algorithm>
#include <utility>

namespace shirabe::trial {
namespace {

// The longest it sleeps before it looks at the clock again, which may not be the machine's.
constexpr absl::Duration kMaxSleep = absl::Seconds(60);

}  // namespace

WakeupTimer::WakeupTimer(Clock* clock, OnTimer ring) : clock_(clock), on_timer_(std::move(ring)) {
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

void WakeupTimer::End() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void WakeupTimer::Wake() {
  const MutexLock lock(mutex_);
  woken_ = true;
  changed_.NotifyAll();
}

void WakeupTimer::Run(std::stop_token stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    woken_ = false;
    lock.unlock();
    const std::optional<absl::Duration> due = on_timer_();
    lock.lock();
    const auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return woken_; };
    while (!stop.stop_requested() && !woken_) {
      if (!due) {
        changed_.Wait(lock, stop, woken);
        continue;
      }
      const absl::Duration left = *due - clock_->Monotonic();
      if (left <= absl::ZeroDuration()) break;
      // Rounded up: a moment too early would be a round for nothing.
      const absl::Duration wait = std::min(left, kMaxSleep) + absl::Microseconds(1);
      changed_.WaitFor(lock, stop, wait, woken);
    }
  }
}

}  // namespace shirabe::trial
