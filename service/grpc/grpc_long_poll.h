// Calls of gRPC that wait, and hold no thread while they do: they begin in a worker, go on in
// service/common/long_polls.h, and end when they are answered, cancelled, or the server ends. One
// caller may have only so many of them. Used by the gRPC services, one object a call.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "client/client.h"
#include "service/common/long_polls.h"
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
  // Once, with the caller's client. A request that is no message to be believed ends here.
  virtual std::optional<Status> Begin(std::unique_ptr<client::Client> client) = 0;
  // How it waits, where it does not end there.
  virtual LongPollTerms terms() const = 0;
  // With `last` it must answer.
  virtual std::optional<Status> TryAnswer(bool last) = 0;
};

// For a handler to return. Of `service_context`, long_polls, workers and quotas are there.
grpc::ServerUnaryReactor* StartWaiting(grpc::CallbackServerContext* context,
                                       const ServiceContext& service_context,
                                       std::unique_ptr<WaitingCall> call);

}  // namespace shirabe::service
