// The endpoint of one pod for programs that report their status over HTTP
// (trial/local/status_endpoint.h): what is new in a call becomes a line of the metrics file
// (metrics/trainer_status.h). It listens on the pod's own 127.0.0.1, at the port that the
// init container has chosen, and wants the token that it has written down. A thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "sidecar/pod_config.h"

namespace shirabe::sidecar {

constexpr uint16_t kTrainerPort = 10779;  // if the system cannot name a free one

class TrainerEndpoint {
 public:
  virtual ~TrainerEndpoint() = default;  // closes it
};

// `on_points`, which may be empty, is called in the endpoint's thread after a line was written.
// kNotFound if the init container has prepared none; kUnavailable: the port is taken.
StatusOr<std::unique_ptr<TrainerEndpoint>> OpenTrainerEndpoint(const Pod& pod,
                                                               std::function<void()> on_points);

}  // namespace shirabe::sidecar
