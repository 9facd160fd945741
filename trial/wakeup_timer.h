// One thread that does something whenever its time has come, and sleeps in between. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"

namespace shirabe::trial {

class WakeupTimer {
 public:
  // Called in the timer's thread: at first soon, then at the moment, by clock->Monotonic(), that it
  // returned last, or once Wake was called, whichever is earlier; nullopt leaves it to Wake. It may
  // call Wake, and must not destroy the timer. The clock outlives the timer.
  using OnTimer = std::function<std::optional<absl::Duration>()>;

  WakeupTimer(Clock* clock, OnTimer ring);
  // Waits for a call that is under way.
  ~WakeupTimer() = default;

  // Something has changed: look again soon.
  void Wake();

 private:
  void Run(std::stop_token stop);

  Clock* const clock_;
  const OnTimer on_timer_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool woken_ = false;   // guarded by mutex_
  std::jthread thread_;  // last: stopped and joined before the rest goes
};

}  // namespace shirabe::trial
