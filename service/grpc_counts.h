// Counts the calls of a gRPC server for /metrics: method, code and time of each, ours, Katib's and
// the health service's alike.
#pragma once

#include "grpcpp/server_builder.h"
#include "service/metrics.h"

namespace shirabe::service {

// Before the server is built; `metrics` outlives it.
void CountCalls(grpc::ServerBuilder& builder, Metrics* metrics);

}  // namespace shirabe::service
