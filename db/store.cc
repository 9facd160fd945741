#include "db/store.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/clock.h"

namespace shirabe::db {
namespace {

// Not zero: who asks again and again until it is stopped does not spin.
constexpr absl::Duration kWaitAtEnd = absl::Milliseconds(2);
constexpr absl::Duration kNotifyPollInterval = absl::Milliseconds(100);
// The standard library's waits overflow with an infinite time-out.
constexpr absl::Duration kMaxWait = absl::Hours(24);

}  // namespace

void ChangeSignal::Notify(int64_t revision) {
  {
    const MutexLock lock(mutex_);
    if (revision <= newest_) return;
    newest_ = revision;
  }
  notified_.NotifyAll();
}

int64_t ChangeSignal::Await(int64_t after, absl::Duration timeout) {
  MutexLock lock(mutex_);
  const bool ended_before = ending_;
  notified_.WaitFor(lock, std::min(timeout, ended_before ? kWaitAtEnd : kMaxWait),
                    [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                      return newest_ > after || ending_ != ended_before;
                    });
  return newest_;
}

bool ChangeSignal::ending() {
  const MutexLock lock(mutex_);
  return ending_;
}

void ChangeSignal::EndWaits() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  notified_.NotifyAll();
}

StatusOr<int64_t> AwaitByPolling(Store* store, ChangeSignal* signal, int64_t after,
                                 absl::Duration timeout) {
  const absl::Duration deadline = RealClock()->Monotonic() + timeout;
  for (bool ended = false;;) {
    ASSIGN_OR_RETURN(const int64_t revision, store->Revision());
    const absl::Duration left = deadline - RealClock()->Monotonic();
    if (revision > after || left <= absl::ZeroDuration() || ended) return revision;
    signal->Await(after, std::min(left, kNotifyPollInterval));
    ended = signal->ending();
  }
}

namespace {

// An address as it may be shown: what follows the scheme can hold a password.
std::string Showable(const std::string& address) {
  const bool secret =
      address.find('@') != std::string::npos || address.find("password") != std::string::npos;
  return secret ? address.substr(0, address.find(':')) + ":…" : address;
}

}  // namespace

StatusOr<int64_t> Store::AwaitChange(int64_t after, absl::Duration timeout) {
  ChangeSignal nobody_raises;
  return AwaitByPolling(this, &nobody_raises, after, timeout);
}

StatusOr<std::unique_ptr<Store>> Open(const std::string& address, bool read_only) {
  const size_t colon = address.find(':');
  const std::string scheme = address.substr(0, colon);
  const StoreInfo* info = Registry<StoreInfo>::Get().Find(scheme);
  if (colon == std::string::npos || info == nullptr) {
    const auto names = Registry<StoreInfo>::Get().Names();
    return absl::InvalidArgumentError("database \"" + Showable(address) +
                                      "\" must begin with one of: " + absl::StrJoin(names, ":, ") +
                                      ": (for example sqlite:/data/shirabe.db)");
  }
  return info->open(address.substr(colon + 1), read_only);
}

}  // namespace shirabe::db
