#include "crd/work_queue.h"

#include <algorithm>

namespace shirabe::crd {
namespace {

// A clock that is set by hand wakes no thread, so that none sleeps for long.
constexpr absl::Duration kClockPollInterval = absl::Milliseconds(200);

}  // namespace

void WorkQueue::Add(const ExperimentKey& key, absl::Duration delay) {
  {
    const MutexLock lock(mutex_);
    absl::Duration at = clock_->Monotonic() + delay;
    const auto earliest = earliest_.find(key);
    if (earliest != earliest_.end()) at = std::max(at, earliest->second);
    const auto busy = busy_.find(key);
    if (busy == busy_.end()) {
      due_.SetEarlier(key, at);
    } else {
      busy->second = std::min(busy->second, at);
    }
  }
  changed_.NotifyOne();
}

std::optional<ExperimentKey> WorkQueue::Pop(std::stop_token stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const absl::Duration wait = due_.NextDue() - clock_->Monotonic();
    if (wait <= absl::ZeroDuration()) {
      const ExperimentKey key = due_.Pop();
      busy_[key] = absl::InfiniteDuration();
      return key;
    }
    changed_.SleepFor(lock, stop, std::min(kClockPollInterval, wait));
  }
  return std::nullopt;
}

void WorkQueue::Done(const ExperimentKey& key) {
  {
    const MutexLock lock(mutex_);
    const absl::Duration earliest = clock_->Monotonic() + interval_;
    // Those that are free anyway need no entry.
    std::erase_if(earliest_,
                  [&](const auto& entry) { return entry.second < earliest - interval_; });
    earliest_[key] = earliest;
    const absl::Duration again = busy_.at(key);
    busy_.erase(key);
    if (again < absl::InfiniteDuration()) due_.Set(key, std::max(again, earliest));
  }
  changed_.NotifyOne();
}

}  // namespace shirabe::crd
