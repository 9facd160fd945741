// The gRPC service of Shirabe: proto/shirabe/v1/api.proto over a client. Each call shows its token,
// gets a client for that caller (service/common/guarded_client.h), and is answered in its own
// thread, of which one caller has only so many at the same time; those that wait hold none
// (grpc_long_poll.h). What the ServiceContext points to outlives the service.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "service/grpc/grpc_caller.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace shirabe::service {

std::unique_ptr<grpc::Service> MakeShirabeService(const ServiceContext& service_context);
// Its methods that wait: for gRPC's callbacks.
const std::set<std::string>& WaitingMethods();

}  // namespace shirabe::service
