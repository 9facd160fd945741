// Waiting in handlers that the end of the server interrupts. One object a server; thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace shirabe::service {

class Patience {
 public:
  // False, at once, if the server stops.
  bool Wait(absl::Duration time) {
    std::unique_lock lock(mutex_);
    return !stopped_.wait_for(lock, absl::ToChronoMicroseconds(time), [&] { return over_; });
  }
  // From now on nobody waits.
  void End() {
    std::lock_guard lock(mutex_);
    over_ = true;
    stopped_.notify_all();
  }
  bool over() const {
    std::lock_guard lock(mutex_);
    return over_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool over_ = false;
};

}  // namespace shirabe::service
