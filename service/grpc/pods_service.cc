#include "service/grpc/pods_service.h"

#include <string>

#include "absl/strings/match.h"
#include "base/text/message_check.h"
#include "proto/shirabe/v1/pod.grpc.pb.h"
#include "service/grpc/grpc_caller.h"

namespace shirabe::service {
namespace {

// "" if none is shown.
std::string BearerOf(const grpc::ServerContext& context) {
  constexpr char kScheme[] = "bearer ";
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) return "";
  const std::string value(found->second.data(), found->second.size());
  return absl::StartsWithIgnoreCase(value, kScheme) ? value.substr(sizeof kScheme - 1) : "";
}

class PodsService : public v1::Pods::Service {
 public:
  explicit PodsService(experiment::Controller* controller) : controller_(controller) {}

  grpc::Status Sync(grpc::ServerContext* context, const v1::SyncRequest* request,
                    v1::SyncReply* reply) override {
    // The words of a program may hold anything.
    const Status good = CheckMessage(*request, {.allow_nul = true});
    if (!good.ok()) return ToGrpc(good);
    auto answer = controller_->executor().Sync(*request, BearerOf(*context));
    if (!answer.ok()) return ToGrpc(answer.status());
    *reply = *std::move(answer);
    return grpc::Status::OK;
  }

  grpc::Status Grant(grpc::ServerContext* context, const v1::GrantRequest* request,
                     v1::GrantReply* reply) override {
    const Status good = CheckMessage(*request);
    if (!good.ok()) return ToGrpc(good);
    auto answer = controller_->executor().Grant(*request, BearerOf(*context));
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
