#include "sidecar/link.h"

#include <grpcpp/grpcpp.h>

#include "proto/shirabe/v1/pod.grpc.pb.h"

namespace shirabe::sidecar {
namespace {

class GrpcLink : public Link {
 public:
  explicit GrpcLink(const v1::PodConfig& config) : server_(config.server()) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = config.ca();
    credentials_ =
        config.ca().empty() ? grpc::InsecureChannelCredentials() : grpc::SslCredentials(options);
  }

  StatusOr<v1::SyncReply> Sync(const v1::SyncRequest& request, absl::Duration timeout) override {
    if (stub_ == nullptr) Connect();
    grpc::ClientContext context;
    const gpr_timespec limit =
        gpr_time_from_millis(absl::ToInt64Milliseconds(timeout), GPR_TIMESPAN);
    context.set_deadline(limit);
    v1::SyncReply reply;
    const grpc::Status status = stub_->Sync(&context, request, &reply);
    if (status.ok()) return reply;
    const auto code = static_cast<absl::StatusCode>(status.error_code());
    if (code == absl::StatusCode::kDeadlineExceeded || code == absl::StatusCode::kUnavailable) {
      stub_ = nullptr;
    }
    return Status(code, status.error_message());
  }

 private:
  void Connect() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the proxy of the program's images
    stub_ = v1::Pods::NewStub(grpc::CreateCustomChannel(server_, credentials_, arguments));
  }

  const std::string server_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;  // shared, as gRPC has it
  std::unique_ptr<v1::Pods::Stub> stub_;
};

}  // namespace

std::unique_ptr<Link> MakeLink(const v1::PodConfig& config) {
  return std::make_unique<GrpcLink>(config);
}

}  // namespace shirabe::sidecar
