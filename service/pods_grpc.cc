#include "service/pods_grpc.h"

#include "proto/shirabe/v1/pod.grpc.pb.h"
#include "service/katib_codec.h"

namespace shirabe::service {
namespace {

class PodsService : public v1::Pods::Service {
 public:
  explicit PodsService(experiment::Controller* controller) : controller_(controller) {}

  grpc::Status Sync(grpc::ServerContext*, const v1::SyncRequest* request,
                    v1::SyncReply* reply) override {
    auto answer = controller_->Sync(*request);
    if (!answer.ok()) return ToGrpc(answer.status());
    *reply = *std::move(answer);
    return grpc::Status::OK;
  }

 private:
  experiment::Controller* const controller_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePodsService(experiment::Controller* controller) {
  return std::make_unique<PodsService>(controller);
}

}  // namespace shirabe::service
