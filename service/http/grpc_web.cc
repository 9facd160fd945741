#include "service/http/grpc_web.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/text/grpc_web_frames.h"
#include "service/http/http_message.h"

namespace shirabe::service {
namespace {

constexpr char kServicePath[] = "/shirabe.v1.Shirabe/";
constexpr absl::Duration kAtOnce = absl::Milliseconds(200);  // so long a call may hold a thread
constexpr absl::Duration kPollInterval = absl::Milliseconds(100);
constexpr absl::Duration kMaxCallTime = absl::Minutes(6);  // an import

grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

// One call, message by message. It is cancelled where the rest is not wanted.
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

  // Sends it, and asks for the first message.
  void Begin(const std::string& message) {
    call_->StartCall(this);
    if (Done()) {
      call_->WriteLast(ToBuffer(message), {}, this);
      (void)Done();
    }
    call_->Read(&message_, this);
  }
  // Whether the first message, or the end, is there within this time.
  bool Await(absl::Duration patience) {
    if (first_) return true;
    void* tag = nullptr;
    bool ok = false;
    const auto deadline = absl::ToChronoTime(RealClock()->Now() + patience);
    if (queue_.AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) return false;
    first_ = ReadPiece(ok);
    return true;
  }

  StatusOr<Piece> Next() override {
    if (first_) return *std::exchange(first_, std::nullopt);
    call_->Read(&message_, this);
    return ReadPiece(Done());
  }

 private:
  // What was begun last is over; false if it failed.
  bool Done() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  // After a read: the message, or how the call ended.
  Piece ReadPiece(bool read) {
    if (read) return {.text = MessageFrame(BytesOf(message_))};
    grpc::Status end;
    call_->Finish(&end, this);
    (void)Done();
    const Status status(static_cast<absl::StatusCode>(end.error_code()), end.error_message());
    return {.text = EndFrame(status), .end = true};
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer message_;
  std::optional<Piece> first_;
};

HttpReply ReplyFrom(std::unique_ptr<CallSource> source) {
  HttpReply reply{.type = kGrpcWebType};
  reply.source = std::move(source);
  return reply;
}

// A call that waits, as those do that follow the store.
class PendingCall : public PendingReply {
 public:
  explicit PendingCall(std::unique_ptr<CallSource> source)
      : PendingReply({.patience = kMaxCallTime, .poll = kPollInterval}),
        source_(std::move(source)) {}
  std::optional<StatusOr<HttpReply>> TryAnswer(bool last) override {
    if (source_->Await(absl::ZeroDuration())) return ReplyFrom(std::move(source_));
    if (!last) return std::nullopt;
    return absl::DeadlineExceededError("the call has not been answered in time");
  }

 private:
  std::unique_ptr<CallSource> source_;
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

const std::string& GrpcWeb::AuthorizationOf(const HttpRequest& request) {
  const std::string& own = request.Header("x-shirabe-authorization");
  return own.empty() ? request.Header("authorization") : own;
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
  auto source = std::make_unique<CallSource>(channel_, request.target, AuthorizationOf(request));
  source->Begin(body.messages[0]);
  if (source->Await(kAtOnce)) return ReplyFrom(std::move(source));
  HttpReply reply;
  reply.pending = std::make_unique<PendingCall>(std::move(source));
  return reply;
}

}  // namespace shirabe::service
