#include "base/rate_limiter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shirabe {
namespace {

constexpr size_t kMostCallers = 10'000;

}  // namespace

Status RateLimiter::Take(const std::string& caller) {
  if (limits_.requests_per_second <= 0) return absl::OkStatus();
  const absl::Duration now = clock_->Monotonic();
  std::lock_guard lock(mutex_);
  if (buckets_.size() >= kMostCallers) ForgetTheIdle(now);
  auto [bucket, is_new] = buckets_.try_emplace(caller, Bucket{limits_.burst, now});
  Bucket& mine = bucket->second;
  const double seconds = absl::ToDoubleSeconds(now - mine.filled);
  mine.tokens = std::min(limits_.burst, mine.tokens + seconds * limits_.requests_per_second);
  mine.filled = now;
  if (mine.tokens < 1) {
    return absl::ResourceExhaustedError(absl::StrCat("more than ", limits_.requests_per_second,
                                                     " requests a second: wait a second"));
  }
  mine.tokens -= 1;
  return absl::OkStatus();
}

// A full bucket is as good as none.
void RateLimiter::ForgetTheIdle(absl::Duration now) {
  const absl::Duration full = absl::Seconds(limits_.burst / limits_.requests_per_second);
  std::erase_if(buckets_, [&](const auto& entry) { return now - entry.second.filled >= full; });
}

}  // namespace shirabe
