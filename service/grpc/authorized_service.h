// A gRPC service behind a check of who calls. gRPC itself takes a message apart before anything of
// ours is asked: megabytes become hundreds of them, for any program that can reach the port. Here
// the message stays as it came until the check has let its caller in. Made by the server for each
// service; any number of calls at a time.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/rate_limits.h"
#include "base/status.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/server_interceptor.h"
#include "service/common/server_metrics.h"

namespace google::protobuf {
class ServiceDescriptor;
}

namespace shirabe::service {

// Whether this call may be answered: `method` as the table of rights has it. Any thread; may take a
// moment.
using CallCheck = std::function<Status(const grpc::ServerContext&, const std::string& method)>;

// The same methods, each asked for after the check. `service` is one that protoc made of the
// descriptor, with nothing but unary methods and streams of replies. Those in `waiting` are written
// for gRPC's callbacks and check for themselves (grpc_long_poll.h); their messages must be small.
std::unique_ptr<grpc::Service> Checked(std::unique_ptr<grpc::Service> service,
                                       const google::protobuf::ServiceDescriptor& descriptor,
                                       CallCheck check, const std::set<std::string>& waiting = {});

// Ends calls of gRPC beyond what callers may have at work at the same time, where no service of
// ours asks: reflection and health, for which no token is needed and whose streams hold a thread as
// long as their caller likes, and Katib's and the pods' services, by the address they come from.
// The caller hears CANCELLED. Also tells the listener which connections belong to known callers.
// Made by the server for its gRPC listeners.

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
