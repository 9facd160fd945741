// Counts the calls of a gRPC server for /metrics: method, code and time of each, ours, Katib's and
// the health service's alike; and keeps them within their bounds.
#pragma once

#include "grpcpp/server_builder.h"
#include "service/grpc_bounds.h"
#include "service/metrics.h"

namespace shirabe::service {

struct CallWatch {
  Metrics* metrics = nullptr;
  CallBounds* bounds = nullptr;
  GrpcListener* listener = nullptr;  // of the same door
};

// Before the server is built; what is watched outlives it.
void CountCalls(grpc::ServerBuilder& builder, const CallWatch& watch);

}  // namespace shirabe::service
