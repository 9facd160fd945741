// The door for pods: what stands beside an attempt brings its files and its state. An attempt's own
// token is checked by the executor, so no other is asked for.
#pragma once

#include <memory>

#include "experiment/controller.h"
#include "grpcpp/grpcpp.h"

namespace shirabe::service {

// The controller outlives the service.
std::unique_ptr<grpc::Service> MakePodsService(experiment::Controller* controller);

}  // namespace shirabe::service
