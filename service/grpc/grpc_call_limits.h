// Ends calls of gRPC beyond what callers may have at work at the same time, where no service of
// ours asks: reflection and health, for which no token is needed and whose streams hold a thread as
// long as their caller likes, and Katib's and the pods' services, by the address they come from.
// The caller hears CANCELLED. Also tells the listener which connections belong to known callers.
// Made by the server for its gRPC listeners.
#pragma once

#include <memory>

#include "base/rate_limits.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/server_interceptor.h"
#include "service/common/server_metrics.h"

namespace shirabe::service {

class GrpcListener;

struct CallBounds {
  Quota open{{.what = "calls without a token", .caller = 8, .all = 64}};
  Quota others{{.what = "calls", .caller = 128}};
};

// Both outlive it.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> BoundCalls(
    CallBounds* bounds, GrpcListener* listener);

// Counts the calls of a gRPC server for /metrics: method, code and time of each, ours, Katib's and
// the health service's alike; and keeps them within their bounds.
struct CallWatch {
  Metrics* metrics = nullptr;
  CallBounds* bounds = nullptr;
  GrpcListener* listener = nullptr;  // of the same server
};

// Before the server is built; what is watched outlives it.
void CountCalls(grpc::ServerBuilder& builder, const CallWatch& watch);

}  // namespace shirabe::service
