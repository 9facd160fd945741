// How often each caller may ask: tokens flow into his bucket, each request takes one. One object a
// server, shared by its doors, so that nobody gets twice as much by using two. A caller is a token,
// or an address where the token proves nothing yet; those who have been idle long enough to have a
// full bucket are forgotten, so that many callers cost no memory for ever. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"

namespace shirabe {

struct RateLimits {
  double requests_per_second = 0;  // of one caller, in the long run; 0 = any
  double burst = 0;                // at once
};

class RateLimiter {
 public:
  RateLimiter(RateLimits limits, Clock* clock) : limits_(limits), clock_(clock) {}
  // kResourceExhausted, saying when to try again, if his bucket is empty.
  Status Take(const std::string& caller);

 private:
  struct Bucket {
    double tokens = 0;
    absl::Duration filled = absl::ZeroDuration();
  };
  void ForgetTheIdle(absl::Duration now);  // with mutex_ held

  const RateLimits limits_;
  Clock* const clock_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace shirabe
