#include "crd/work_queue.h"

#include <algorithm>

namespace shirabe::crd {
namespace {

// A clock that is set by hand wakes no thread, so that none sleeps for long.
constexpr absl::Duration kClockPollInterval = absl::Milliseconds(200);

}  // namespace

void WorkQueue::Add(const ExperimentKey& key, absl::Duration delay) {
  {
    std::lock_guard lock(mutex_);
    absl::Duration at = clock_->Monotonic() + delay;
    const auto earliest = earliest_.find(key);
    if (earliest != earliest_.end()) at = std::max(at, earliest->second);
    const auto [entry, added] = due_.emplace(key, at);
    if (!added) entry->second = std::min(entry->second, at);
  }
  changed_.notify_one();
}

std::map<ExperimentKey, absl::Duration>::iterator WorkQueue::Next() {
  auto next = due_.end();
  for (auto it = due_.begin(); it != due_.end(); ++it) {
    if (busy_.count(it->first) > 0) continue;
    if (next == due_.end() || it->second < next->second) next = it;
  }
  return next;
}

std::optional<ExperimentKey> WorkQueue::Pop(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto next = Next();
    const absl::Duration now = clock_->Monotonic();
    if (next != due_.end() && next->second <= now) {
      const ExperimentKey key = next->first;
      due_.erase(next);
      busy_.insert(key);
      return key;
    }
    const absl::Duration nap =
        next == due_.end() ? kClockPollInterval : std::min(kClockPollInterval, next->second - now);
    changed_.wait_for(lock, stop, absl::ToChronoNanoseconds(nap), [] { return false; });
  }
  return std::nullopt;
}

void WorkQueue::Done(const ExperimentKey& key) {
  {
    std::lock_guard lock(mutex_);
    busy_.erase(key);
    const absl::Duration earliest = clock_->Monotonic() + interval_;
    // Those that are free anyway need no entry.
    std::erase_if(earliest_,
                  [&](const auto& entry) { return entry.second < earliest - interval_; });
    earliest_[key] = earliest;
    const auto again = due_.find(key);
    if (again != due_.end()) again->second = std::max(again->second, earliest);
  }
  changed_.notify_one();
}

}  // namespace shirabe::crd
