// How often an API server was asked, and what it answered: what /metrics says of a controller's
// load on its cluster. One object counts for all clients that are given it, and outlives them.
// Every try counts, as it does for the server. Thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace shirabe::kube {

struct RequestKind {
  std::string verb;      // get, list, watch, create, apply, patch, delete
  std::string resource;  // pods, trials/status; "" for what is no resource: /version
  std::string code;      // of HTTP; "none" if there was no answer
  auto operator<=>(const RequestKind&) const = default;
};

// In Kubernetes' words; the code is left empty. Pure.
RequestKind KindOfRequest(const std::string& method, const std::string& target,
                          const std::string& content_type);

class RequestCounts {
 public:
  void Add(RequestKind kind);
  std::map<RequestKind, int64_t> All() const;

 private:
  mutable std::mutex mutex_;
  std::map<RequestKind, int64_t> counts_;  // guarded by mutex_
};

}  // namespace shirabe::kube
