// Calls of gRPC that wait, and hold no thread while they do: they begin in a worker, go on in
// service/common/long_polls.h, and end when they are answered, cancelled, or the server ends. One
// caller may have only so many of them. Used by the gRPC services, one object a call.
#pragma once

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "client/client.h"
#include "service/grpc/grpc_caller.h"

namespace grpc {
class CallbackServerContext;
class ServerUnaryReactor;
}  // namespace grpc

namespace shirabe::service {

// Fills its reply and says how the call ended; nothing as long as it waits. Used by one thread at a
// time.
class WaitingCall {
 public:
  virtual ~WaitingCall() = default;
  // Once, with the caller's client.
  virtual std::optional<Status> Begin(std::unique_ptr<client::Client> client) = 0;
  // With `last` it must answer.
  virtual std::optional<Status> TryAnswer(bool last) = 0;

  Status valid;                   // of the request as a message: it is not begun unless OK
  ExperimentKey experiment = {};  // whose changes may bring the answer; without a name: all
  absl::Duration patience = absl::ZeroDuration();
  absl::Duration poll = absl::InfiniteDuration();
};

// For a handler to return. Of `service_context`, waits, workers and quotas are there.
grpc::ServerUnaryReactor* StartWaiting(grpc::CallbackServerContext* context,
                                       const ServiceContext& service_context,
                                       std::unique_ptr<WaitingCall> call);

}  // namespace shirabe::service
