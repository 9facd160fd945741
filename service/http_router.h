// From a request to its reply: finds the route, checks who calls, how often, and what with, and
// calls the handler. Called by the server in its workers, and by tests without a server.
// Thread-safe; never throws.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "service/routes.h"

namespace shirabe::service {

struct RouterLimits {
  double requests_per_second = 0;  // of one caller, in the long run; 0 = any
  double burst = 0;                // at once
};

// How often each caller may ask: tokens flow into his bucket, each request takes one. Thread-safe.
class RateLimiter {
 public:
  RateLimiter(RouterLimits limits, Clock* clock) : limits_(limits), clock_(clock) {}
  // kResourceExhausted, saying when to try again, if his bucket is empty.
  Status Take(const std::string& caller);

 private:
  struct Bucket {
    double tokens = 0;
    absl::Duration filled = absl::ZeroDuration();
  };
  void ForgetTheIdle(absl::Duration now);  // with mutex_ held

  const RouterLimits limits_;
  Clock* const clock_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

class Router {
 public:
  Router(HttpContext context, RouterLimits limits);

  HttpReply Handle(const HttpRequest& request);
  // Whether a request, without its body yet, is for nothing, or from nobody who is known: its body
  // need not be read then. OK says nothing about the rest.
  Status CheckHead(const HttpRequest& request) const;
  // Whether it may take long, so that it should not hold up those who do not wait.
  bool IsSlow(const HttpRequest& request) const;

 private:
  StatusOr<HttpReply> Answer(const HttpRequest& request, const Route*& route);
  Status Admit(const Route& route, Call& call);

  const HttpContext context_;
  RateLimiter limiter_;
};

}  // namespace shirabe::service
