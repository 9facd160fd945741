// Counts the calls of a gRPC server for /metrics: method, code and time of each, ours, Katib's and
// the health service's alike; and keeps them within their bounds.
#pragma once

#include "grpcpp/server_builder.h"
#include "service/grpc_bounds.h"
#include "service/metrics.h"

namespace shirabe::service {

// Before the server is built; `metrics` and `bounds` outlive it.
void CountCalls(grpc::ServerBuilder& builder, Metrics* metrics, CallBounds* bounds);

}  // namespace shirabe::service
