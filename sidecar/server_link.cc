#include "sidecar/server_link.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/open_beneath.h"
#include "base/text/json_text.h"
#include "base/timestamp.h"
#include "proto/shirabe/v1/pod.grpc.pb.h"
#include "trial/control_file.h"

namespace shirabe::sidecar {

namespace {

constexpr int64_t kMaxTokenBytes = 64 << 10;
constexpr int kNameTimeoutMs = 3000;

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
    return Call<v1::SyncReply>(&v1::Pods::Stub::Sync, request, timeout);
  }
  StatusOr<v1::GrantReply> Grant(const v1::GrantRequest& request, absl::Duration timeout) override {
    return Call<v1::GrantReply>(&v1::Pods::Stub::Grant, request, timeout);
  }

 private:
  template <class Reply, class Request>
  StatusOr<Reply> Call(grpc::Status (v1::Pods::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Reply*),
                       const Request& request, absl::Duration timeout) {
    if (stub_ == nullptr) Connect();
    grpc::ClientContext context;
    const gpr_timespec limit =
        gpr_time_from_millis(absl::ToInt64Milliseconds(timeout), GPR_TIMESPAN);
    context.set_deadline(limit);
    RETURN_IF_ERROR(ShowToken(context));
    Reply reply;
    const grpc::Status status = (*stub_.*method)(&context, request, &reply);
    if (status.ok()) return reply;
    const auto code = static_cast<absl::StatusCode>(status.error_code());
    if (code == absl::StatusCode::kDeadlineExceeded || code == absl::StatusCode::kUnavailable) {
      stub_ = nullptr;
    }
    return Status(code, status.error_message());
  }

  // Read each time, since the kubelet renews it.
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
    // Before a call's own time is over: then its error says that the name is not resolved.
    arguments.SetInt(GRPC_ARG_DNS_ARES_QUERY_TIMEOUT_MS, kNameTimeoutMs);
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

namespace {

constexpr int64_t kMaxControlBytes = 1 << 16;

bool Stands(const v1::PodRequest& request, const std::string& control_file) {
  const auto text = ReadBeneath("", control_file, kMaxControlBytes);
  if (!text.ok()) return false;
  const auto json = ReadJsonOrDiscarded(*text);
  if (!json.is_object() || !json.contains("reason") || !json.contains("deadline")) return false;
  return json["reason"] == request.reason() &&
         json["deadline"] == absl::ToUnixSeconds(FromProto(request.deadline()));
}

bool Same(const v1::Checkpoint& a, const v1::Checkpoint& b) {
  return a.namespace_() == b.namespace_() && a.experiment() == b.experiment() &&
         a.trial() == b.trial() && a.attempt() == b.attempt() && a.step() == b.step();
}

}  // namespace

Status ForwardRequest(const v1::PodRequest& request, const std::string& control_file) {
  if (Stands(request, control_file)) return absl::OkStatus();
  return trial::WriteControl(
      control_file, {.reason = request.reason(), .deadline = FromProto(request.deadline())});
}

void PruneWorker::Prune(const v1::Checkpoint& checkpoint) {
  {
    const MutexLock lock(mutex_);
    for (const Task& task : tasks_) {
      if (Same(task.checkpoint, checkpoint)) return;
    }
    tasks_.push_back({checkpoint});
  }
  task_pool_.Run([this, checkpoint] {
    const Status status = store_->Prune(checkpoint);
    const bool gone = status.ok() || absl::IsNotFound(status);
    if (!gone) {
      Log(LogLevel::kWarning, "failed to delete an unneeded checkpoint",
          {{"checkpoint", checkpoint.location()}, {"error", Message(status)}});
    }
    Finish(checkpoint, gone);
  });
}

// One that failed is forgotten: the server asks again.
void PruneWorker::Finish(const v1::Checkpoint& checkpoint, bool done) {
  const MutexLock lock(mutex_);
  const auto task = std::find_if(tasks_.begin(), tasks_.end(),
                                 [&](const Task& one) { return Same(one.checkpoint, checkpoint); });
  if (task == tasks_.end()) return;
  task->done = done;
  if (!done) tasks_.erase(task);
}

std::vector<v1::Checkpoint> PruneWorker::Done() const {
  std::vector<v1::Checkpoint> done;
  const MutexLock lock(mutex_);
  for (const Task& task : tasks_) {
    if (task.done) done.push_back(task.checkpoint);
  }
  return done;
}

void PruneWorker::Acknowledged(const v1::PodState& state) {
  const MutexLock lock(mutex_);
  for (const v1::Checkpoint& known : state.pruned()) {
    std::erase_if(tasks_, [&](const Task& task) { return Same(task.checkpoint, known); });
  }
}

}  // namespace shirabe::sidecar
