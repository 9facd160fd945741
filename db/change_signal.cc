#include "db/change_signal.h"

#include <algorithm>

#include "base/clock.h"

namespace shirabe::db {
namespace {

constexpr absl::Duration kAskEvery = absl::Milliseconds(100);
// The standard library's waits overflow with an infinite time-out.
constexpr absl::Duration kLongestWait = absl::Hours(24);

}  // namespace

void ChangeSignal::Raise(int64_t revision) {
  {
    std::lock_guard lock(mutex_);
    if (revision <= newest_) return;
    newest_ = revision;
  }
  raised_.notify_all();
}

int64_t ChangeSignal::Await(int64_t after, absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  raised_.wait_for(lock, absl::ToChronoMicroseconds(std::min(timeout, kLongestWait)),
                   [&] { return newest_ > after; });
  return newest_;
}

StatusOr<int64_t> AwaitByAsking(Store* store, ChangeSignal* signal, int64_t after,
                                absl::Duration timeout) {
  const absl::Duration deadline = RealClock()->Monotonic() + timeout;
  for (;;) {
    ASSIGN_OR_RETURN(const int64_t revision, store->Revision());
    const absl::Duration left = deadline - RealClock()->Monotonic();
    if (revision > after || left <= absl::ZeroDuration()) return revision;
    signal->Await(after, std::min(left, kAskEvery));
  }
}

}  // namespace shirabe::db
