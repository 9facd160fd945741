#include "base/rate_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shirabe {

Status Quota::Share::Add(int64_t amount) {
  if (quota_ == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(quota_->Hold(caller_, amount));
  amount_ += amount;
  return absl::OkStatus();
}

void Quota::Share::Release() {
  if (quota_ != nullptr) quota_->Return(caller_, amount_);
  quota_ = nullptr;
  amount_ = 0;
}

StatusOr<Quota::Share> Quota::Acquire(Quota* quota, const std::string& caller, int64_t amount) {
  Share share;
  if (quota == nullptr) return share;
  RETURN_IF_ERROR(quota->Hold(caller, amount));
  share.quota_ = quota;
  share.caller_ = caller;
  share.amount_ = amount;
  return share;
}

int64_t Quota::held() const {
  const MutexLock lock(mutex_);
  return sum_;
}

Status Quota::Hold(const std::string& caller, int64_t amount) {
  const MutexLock lock(mutex_);
  const auto found = held_.find(caller);
  const int64_t has = found == held_.end() ? 0 : found->second;
  if (limits_.caller > 0 && has + amount > limits_.caller) {
    return absl::ResourceExhaustedError(
        absl::StrCat("one caller may have ", limits_.caller, " ", limits_.what,
                     " at the same time: try again when one of them has ended"));
  }
  if (limits_.all > 0 && sum_ + amount > limits_.all) {
    return absl::UnavailableError(absl::StrCat("all callers together have ", limits_.all, " ",
                                               limits_.what, " already: try again"));
  }
  if (amount != 0) held_[caller] = has + amount;
  sum_ += amount;
  return absl::OkStatus();
}

void Quota::Return(const std::string& caller, int64_t amount) {
  const MutexLock lock(mutex_);
  sum_ -= amount;
  const auto found = held_.find(caller);
  if (found == held_.end()) return;
  found->second -= amount;
  if (found->second == 0) held_.erase(found);
}

namespace {

constexpr size_t kMaxCallers = 10'000;

}  // namespace

Status RateLimiter::Acquire(const std::string& caller) {
  if (limits_.requests_per_second <= 0) return absl::OkStatus();
  const absl::Duration now = clock_->Monotonic();
  const MutexLock lock(mutex_);
  if (buckets_.size() >= kMaxCallers) EvictIdle(now);
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
void RateLimiter::EvictIdle(absl::Duration now) {
  const absl::Duration full = absl::Seconds(limits_.burst / limits_.requests_per_second);
  std::erase_if(buckets_, [&](const auto& entry) { return now - entry.second.filled >= full; });
}

}  // namespace shirabe
