// The gRPC door: proto/shirabe/v1/api.proto over a client. Each call shows its token, gets a client
// for that caller (guarded_client.h), and is answered in its own thread, of which one caller has
// only so many at the same time; those that wait hold none (grpc_waiting.h). What `Door` points to
// outlives the service.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/quota.h"
#include "client/local_client.h"
#include "service/common/auth.h"
#include "service/common/guarded_client.h"

namespace grpc {
class ServerContextBase;
class Service;
}  // namespace grpc

namespace shirabe::service {

class ChangeHub;
struct Quotas;
class Waits;
class Workers;

// What every door of the server needs.
struct Door {
  client::LocalClient* client = nullptr;
  const Tokens* tokens = nullptr;
  Rights rights;
  Clock* clock = nullptr;
  ChangeHub* hub = nullptr;
  Waits* waits = nullptr;      // for calls that wait,
  Workers* workers = nullptr;  // which begin here
  Quotas* quotas = nullptr;
  RateLimiter* limiter = nullptr;  // null = anybody may call as often as he likes
};

std::unique_ptr<grpc::Service> MakeShirabeService(const Door& door);
// Its methods that wait: for gRPC's callbacks.
const std::set<std::string>& WaitingMethods();

// Whether the token of a call lets its caller in at this method at all, before anything else of the
// call is looked at: kUnauthenticated, kPermissionDenied.
Status CheckCaller(const grpc::ServerContextBase& context, const std::string& method,
                   const Door& door);

// The principal that the token of a call shows; kUnauthenticated. kResourceExhausted: he calls too
// often.
StatusOr<Principal> CallerOf(const grpc::ServerContextBase& context, const Door& door);

// Who takes turns, and has quotas: a token that is known, or an address.
std::string CallerId(const grpc::ServerContextBase& context, const StatusOr<Principal>& principal);
// The same before anybody else has been asked whose token it is.
std::string LaneOf(const grpc::ServerContextBase& context, const Door& door);

}  // namespace shirabe::service
