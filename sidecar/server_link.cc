#include "sidecar/server_link.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "proto/shirabe/v1/pod.grpc.pb.h"

namespace shirabe::sidecar {
namespace {

constexpr int64_t kMaxTokenBytes = 64 << 10;

class GrpcServerLink : public ServerLink {
 public:
  explicit GrpcServerLink(const v1::PodConfig& config)
      : server_(config.server()), token_path_(config.token_path()) {
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
    RETURN_IF_ERROR(ShowToken(context));
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
  // Read anew each time, since the kubelet renews it.
  Status ShowToken(grpc::ClientContext& context) const {
    if (token_path_.empty()) return absl::OkStatus();
    const auto token = ReadFile(token_path_, kMaxTokenBytes);
    if (!token.ok()) return absl::UnavailableError(Message(token.status()));
    const absl::string_view text = absl::StripAsciiWhitespace(*token);
    context.AddMetadata("authorization", absl::StrCat("Bearer ", text));
    return absl::OkStatus();
  }

  void Connect() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // the proxy of the program's images
    stub_ = v1::Pods::NewStub(grpc::CreateCustomChannel(server_, credentials_, arguments));
  }

  const std::string server_;
  const std::string token_path_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;  // shared, as gRPC has it
  std::unique_ptr<v1::Pods::Stub> stub_;
};

}  // namespace

std::unique_ptr<ServerLink> MakeServerLink(const v1::PodConfig& config) {
  return std::make_unique<GrpcServerLink>(config);
}

}  // namespace shirabe::sidecar
