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

#include "base/status.h"

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

}  // namespace shirabe::service
