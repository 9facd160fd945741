// The gRPC service for pods: what stands beside an attempt brings its files and its state. Whose
// the token is that a pod shows, the executor finds out, so no other is asked for.
#pragma once

#include <memory>

#include "experiment/experiment_controller.h"
#include "grpcpp/grpcpp.h"

namespace shirabe::service {

// The controller outlives the service.
std::unique_ptr<grpc::Service> MakePodsService(experiment::Controller* controller);

}  // namespace shirabe::service
