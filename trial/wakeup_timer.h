// One thread that does something whenever its time has come, and sleeps in between. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace shirabe::trial {

class WakeupTimer {
 public:
  // Called in the timer's thread: at first soon, then at the moment, by clock->Monotonic(), that it
  // returned last, or once Wake was called, whichever is earlier; nullopt leaves it to Wake. It may
  // call Wake, and must not destroy the timer. The clock outlives the timer.
  using OnTimer = std::function<std::optional<absl::Duration>()>;

  WakeupTimer(Clock* clock, OnTimer ring);
  ~WakeupTimer() { End(); }

  // Waits for a call that is under way; none comes any more.
  void End();

  // Something has changed: look again soon.
  void Wake();

 private:
  void Run(std::stop_token stop);

  Clock* const clock_;
  const OnTimer on_timer_;
  Mutex mutex_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace shirabe::trial
