// The gRPC door: proto/shirabe/v1/api.proto over a client. Each call shows its token, gets a client
// for that caller (guarded_client.h), and is answered in its own thread. What `Door` points to
// outlives the service.
#pragma once

#include <atomic>
#include <memory>

#include "base/clock.h"
#include "base/rate_limiter.h"
#include "client/local_client.h"
#include "service/auth.h"
#include "service/guarded_client.h"

namespace grpc {
class ServerContext;
class Service;
}  // namespace grpc

namespace shirabe::service {

// What every door of the server needs.
struct Door {
  client::LocalClient* client = nullptr;
  const Tokens* tokens = nullptr;
  Rights rights;
  Clock* clock = nullptr;
  const std::atomic<bool>* closing = nullptr;  // true: calls that wait return at once
  RateLimiter* limiter = nullptr;              // null = anybody may call as often as he likes
};

std::unique_ptr<grpc::Service> MakeShirabeService(const Door& door);

// Whether the token of a call lets its caller in at this method at all, before anything else of the
// call is looked at: kUnauthenticated, kPermissionDenied.
Status CheckCaller(const grpc::ServerContext& context, const std::string& method, const Door& door);

// The principal that the token of a call shows; kUnauthenticated. kResourceExhausted: he calls too
// often.
StatusOr<Principal> CallerOf(const grpc::ServerContext& context, const Door& door);

}  // namespace shirabe::service
