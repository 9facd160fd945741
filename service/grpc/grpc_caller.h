// Who calls a gRPC service, and how it is answered: what every service there shares. What a
// ServiceContext points to outlives the services. Any thread.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "base/clock.h"
#include "base/rate_limits.h"
#include "base/status.h"
#include "client/local_client.h"
#include "service/common/authorization.h"
#include "service/common/guarded_client.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace shirabe::service {

class ChangeHub;
struct Quotas;
class LongPollQueue;
class Workers;

// What every gRPC service of the server needs.
struct ServiceContext {
  client::LocalClient* client = nullptr;
  const Tokens* tokens = nullptr;
  GuardOptions rights;
  Clock* clock = nullptr;
  ChangeHub* hub = nullptr;
  LongPollQueue* long_polls = nullptr;  // for calls that wait,
  Workers* workers = nullptr;           // which begin here
  Quotas* quotas = nullptr;
  RateLimiter* limiter = nullptr;  // null = callers may call as often as they like
};

// Whether the token of a call lets its caller in at this method at all, before anything else of the
// call is looked at: kUnauthenticated, kPermissionDenied.
Status CheckCaller(const grpc::ServerContextBase& context, const std::string& method,
                   const ServiceContext& service_context);

// The principal that the token of a call shows; kUnauthenticated. kResourceExhausted: it calls too
// often.
StatusOr<Principal> CallerOf(const grpc::ServerContextBase& context,
                             const ServiceContext& service_context);

// Who takes turns, and has quotas: a token that is known, or an address.
std::string CallerId(const grpc::ServerContextBase& context, const StatusOr<Principal>& principal);
// The same before the cluster has been asked whose token it is.
std::string LaneOf(const grpc::ServerContextBase& context, const ServiceContext& service_context);

// For the wire: the same code, the message as text of a bounded length.
grpc::Status ToGrpc(const Status& status);

}  // namespace shirabe::service
