#include "service/grpc_web.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/grpc_web_frames.h"
#include "service/http_errors.h"

namespace shirabe::service {
namespace {

constexpr char kServicePath[] = "/shirabe.v1.Shirabe/";

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

// One call, message by message. It is cancelled where nobody wants the rest.
class CallSource : public PieceSource {
 public:
  CallSource(const std::shared_ptr<grpc::Channel>& channel,  // shared: gRPC's own
             const std::string& method, const std::string& authorization) {
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
    call_ = grpc::GenericStub(channel).PrepareCall(&context_, method, &queue_);
  }
  ~CallSource() override {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    for (bool ok = false; queue_.Next(&tag, &ok);) continue;
  }

  void Begin(const std::string& message) {
    call_->StartCall(this);
    if (Done()) {
      call_->WriteLast(ToBuffer(message), {}, this);
      (void)Done();
    }
    first_ = Read();
  }

  StatusOr<Piece> Next() override {
    if (!first_) return Read();
    return *std::exchange(first_, std::nullopt);
  }

 private:
  // What was begun last is over; false if it failed.
  bool Done() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  Piece Read() {
    grpc::ByteBuffer message;
    call_->Read(&message, this);
    if (Done()) return {.text = MessageFrame(BytesOf(message))};
    grpc::Status end;
    call_->Finish(&end, this);
    (void)Done();
    const Status status(static_cast<absl::StatusCode>(end.error_code()), end.error_message());
    return {.text = EndFrame(status), .end = true};
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  std::optional<Piece> first_;
};

}  // namespace

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

GrpcWeb::GrpcWeb(std::shared_ptr<grpc::Channel> channel)  // shared: gRPC's own
    : channel_(std::move(channel)) {}

bool GrpcWeb::IsFor(const HttpRequest& request) {
  return absl::StartsWith(request.target, kServicePath);
}

StatusOr<HttpReply> GrpcWeb::Answer(const HttpRequest& request) const {
  if (request.method != "POST" || request.Header("content-type") != kGrpcWebType) {
    return WithHttpStatus(
        absl::InvalidArgumentError(absl::StrCat(
            "calls of gRPC are made here by POST and in ", kGrpcWebType, " only; programs use ",
            "the address of --grpc, or JSON as /openapi.json says")),
        415);
  }
  ASSIGN_OR_RETURN(const GrpcWebBody body, ParseFrames(request.body));
  if (body.messages.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a call takes one message, not ", body.messages.size()));
  }
  const std::string& own = request.Header("x-shirabe-authorization");
  auto source = std::make_unique<CallSource>(channel_, request.target,
                                             own.empty() ? request.Header("authorization") : own);
  source->Begin(body.messages[0]);
  HttpReply reply{.type = kGrpcWebType};
  reply.source = std::move(source);
  return reply;
}

}  // namespace shirabe::service
