// Listens on 127.0.0.1 for programs that POST their status, as Hugging Face's Trainer does where
// $KUBEFLOW_TRAINER_SERVER_URL is set. The path of a request says which attempt it is about, and
// the bearer token proves that it comes from it; what the body means, the attempt's handler knows.
//
// Used by the executor of processes (trial/local/attempt_endpoints.h), for all of its attempts, and
// by the sidecar, for the one of its pod. Programs are hostile: bodies have a limit, requests a
// time limit, and where more calls than kMaxStatusCalls are open the oldest one is dropped, so that
// a program which holds connections open does not keep others from reporting.
//
// Thread-safe. A thread of its own, in which the handlers are called, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace shirabe::trial {

constexpr int kMaxStatusCalls = 128;
constexpr int kMaxStatusPorts = 64;

class StatusEndpoint {
 public:
  // kInvalidArgument: what was sent is wrong (400); any other error: try again (503).
  using Handler = std::function<Status(const std::string& body)>;

  // Does not listen yet. `max_body` in bytes.
  static std::unique_ptr<StatusEndpoint> Create(size_t max_body);
  virtual ~StatusEndpoint() = default;  // closes it; no handler runs any more

  // At a port more; 0: one that is free. Returns the port; does nothing where it listens there.
  // kUnavailable: the port is taken, or there are kMaxStatusPorts.
  virtual StatusOr<uint16_t> Listen(uint16_t port) = 0;

  // Replaces what was there for this path.
  virtual void Add(const std::string& path, const std::string& token, Handler handler) = 0;
  // A call that is being handled comes to its end.
  virtual void Remove(const std::string& path) = 0;
};

}  // namespace shirabe::trial
