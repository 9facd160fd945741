// How much of one thing callers may hold at the same time, each of them and all together: waiting
// calls, event streams, bytes that are being read. One object for a thing, shared by the endpoints
// of a server, so that using two gives no caller twice as much. A caller that holds nothing is
// forgotten. Thread-safe; outlives its shares.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace shirabe {

class Quota {
 public:
  struct Limits {
    std::string what;    // in the plural, for messages: waiting calls
    int64_t caller = 0;  // of one caller; 0 = any number
    int64_t all = 0;     // of all together; 0 = any number
  };

  // What a caller holds, until it is destroyed.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept {
      std::swap(quota_, other.quota_);
      std::swap(caller_, other.caller_);
      std::swap(amount_, other.amount_);
      return *this;
    }
    ~Share() { Release(); }

    // More of it; kResourceExhausted as for Acquire, and then nothing is added.
    Status Add(int64_t amount);
    void Release();

   private:
    friend class Quota;
    Quota* quota_ = nullptr;
    std::string caller_;
    int64_t amount_ = 0;
  };

  explicit Quota(Limits limits) : limits_(std::move(limits)) {}

  // kResourceExhausted, naming the limit, if the caller has as many already; kUnavailable if all
  // callers together do. A null quota has no limits.
  static StatusOr<Share> Acquire(Quota* quota, const std::string& caller, int64_t amount = 1);

  int64_t held() const;  // by all

 private:
  Status Hold(const std::string& caller, int64_t amount);
  void Return(const std::string& caller, int64_t amount);

  const Limits limits_;
  mutable Mutex mutex_;
  std::map<std::string, int64_t> held_ ABSL_GUARDED_BY(mutex_);  // by caller; never 0
  int64_t sum_ ABSL_GUARDED_BY(mutex_) = 0;
};

// How often each caller may ask: tokens flow into its bucket, each request takes one. One object a
// server, shared by its endpoints, so that using two gives no caller twice as much. A caller is a
// token, or an address where the token proves nothing yet; those who have been idle long enough to
// have a full bucket are forgotten, so that many callers cost no memory for ever. Thread-safe.
struct RateLimits {
  double requests_per_second = 0;  // of one caller, in the long run; 0 = any
  double burst = 0;                // at once
};

class RateLimiter {
 public:
  RateLimiter(RateLimits limits, Clock* clock) : limits_(limits), clock_(clock) {}
  // kResourceExhausted, saying when to try again, if the caller's bucket is empty.
  Status Acquire(const std::string& caller);

 private:
  struct Bucket {
    double tokens = 0;
    absl::Duration filled = absl::ZeroDuration();
  };
  void EvictIdle(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const RateLimits limits_;
  Clock* const clock_;
  Mutex mutex_;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe
