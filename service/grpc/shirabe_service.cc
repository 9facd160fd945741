#include "service/grpc/shirabe_service.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/method_handler.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "base/names.h"
#include "base/text/message_check.h"
#include "client/wire_format.h"
#include "proto/shirabe/v1/api.pb.h"
#include "service/common/change_hub.h"
#include "service/common/long_polls.h"
#include "service/common/suggestion_scheduler.h"
#include "service/grpc/grpc_caller.h"
#include "service/grpc/grpc_long_poll.h"

namespace shirabe::service {
namespace {

using client::FromWire;
using client::Method;
using grpc::ByteBuffer;
using grpc::ServerContext;
using grpc::internal::MethodHandler;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;
using Proto = google::protobuf::Message;
using Traits = grpc::SerializationTraits<Proto>;

constexpr absl::Duration kMaxWait = absl::Minutes(1);

// Of the message alone: whether it can be read, and believed.
Status Parse(ByteBuffer bytes, Proto& message) {
  const grpc::Status read = Traits::Deserialize(&bytes, &message);
  if (read.ok()) return CheckMessage(message);
  return Status(static_cast<absl::StatusCode>(read.error_code()), read.error_message());
}

ByteBuffer Pack(const Proto& message) {
  ByteBuffer bytes;
  bool own = false;
  CHECK(Traits::Serialize(message, &bytes, &own).ok());
  return bytes;
}

// ---- calls that wait ---------------------------------------------------------------------------

template <class Request, class Reply>
class TypedCall : public WaitingCall {
 public:
  std::optional<Status> Begin(std::unique_ptr<client::Client> client) final {
    if (!valid_.ok()) return valid_;
    return BeginValid(std::move(client));
  }

 protected:
  TypedCall(const ByteBuffer& request, ByteBuffer* reply)
      : bytes_(reply), valid_(Parse(request, request_)) {}
  virtual std::optional<Status> BeginValid(std::unique_ptr<client::Client> client) = 0;
  absl::Duration patience() const {
    return std::clamp(FromWire(request_.patience()), absl::ZeroDuration(), kMaxWait);
  }
  std::optional<Status> Answer(const Status& status) {
    if (status.ok()) *bytes_ = Pack(reply_);
    return status;
  }
  Request request_;
  Reply reply_;

 private:
  ByteBuffer* const bytes_;
  const Status valid_;  // after request_, which it reads
};

class AwaitChangeCall : public TypedCall<v1::AwaitChangeRequest, v1::Revision> {
 public:
  AwaitChangeCall(const ServiceContext& service_context, const ByteBuffer& request,
                  ByteBuffer* reply)
      : TypedCall(request, reply), hub_(service_context.hub) {}

  LongPollTerms terms() const override { return {.patience = patience()}; }
  std::optional<Status> BeginValid(std::unique_ptr<client::Client> client) override {
    const auto revision = client->AwaitChange(request_.after(), absl::ZeroDuration());
    if (!revision.ok()) return revision.status();
    reply_.set_revision(*revision);
    const bool waits = *revision <= request_.after() && patience() > absl::ZeroDuration();
    return waits ? std::nullopt : Answer(absl::OkStatus());
  }
  std::optional<Status> TryAnswer(bool last) override {
    reply_.set_revision(std::max(reply_.revision(), hub_->revision()));
    if (last || reply_.revision() > request_.after()) return Answer(absl::OkStatus());
    return std::nullopt;
  }

 private:
  ChangeHub* const hub_;
};

class AskCall : public TypedCall<v1::AskRequest, v1::AskReply> {
 public:
  AskCall(const ServiceContext& /*service_context*/, const ByteBuffer& request, ByteBuffer* reply)
      : TypedCall(request, reply) {}

  LongPollTerms terms() const override {
    return {.experiment = FromWire(request_.experiment()), .patience = patience()};
  }
  std::optional<Status> BeginValid(std::unique_ptr<client::Client> client) override {
    ask_.emplace(std::move(client), FromWire(request_.experiment()), request_.caller());
    const auto asked = request_.check_only() ? ask_->Check() : ask_->Begin();
    const bool waits = asked.ok() && asked->pending() && patience() > absl::ZeroDuration();
    if (waits && !request_.check_only()) return std::nullopt;
    return Reply(asked);
  }
  std::optional<Status> TryAnswer(bool last) override {
    const auto asked = ask_->TryAnswer(last);
    return asked ? Reply(*asked) : std::nullopt;
  }

 private:
  std::optional<Status> Reply(const StatusOr<v1::AskReply>& asked) {
    if (asked.ok()) reply_ = *asked;
    return Answer(asked.status());
  }

  std::optional<PendingAskCheck> ask_;
};

class DeleteCall : public TypedCall<v1::DeleteRequest, v1::Done> {
 public:
  DeleteCall(const ServiceContext& /*service_context*/, const ByteBuffer& request,
             ByteBuffer* reply)
      : TypedCall(request, reply) {}

  LongPollTerms terms() const override {
    return {.experiment = FromWire(request_.experiment()),
            .patience = patience(),
            .poll = kDeletionPoll};
  }
  std::optional<Status> BeginValid(std::unique_ptr<client::Client> client) override {
    deletion_.emplace(std::move(client), FromWire(request_.experiment()));
    const Status deleted = deletion_->Begin();
    const bool under_way = absl::IsDeadlineExceeded(deleted);
    return under_way && patience() > absl::ZeroDuration() ? std::nullopt : Answer(deleted);
  }
  std::optional<Status> TryAnswer(bool last) override {
    const auto deleted = deletion_->TryAnswer(last);
    return deleted ? Answer(*deleted) : std::nullopt;
  }

 private:
  std::optional<DeletionCheck> deletion_;
};

using MakeCall = std::unique_ptr<WaitingCall> (*)(const ServiceContext&, const ByteBuffer&,
                                                  ByteBuffer*);

template <class Call>
std::unique_ptr<WaitingCall> Make(const ServiceContext& service_context, const ByteBuffer& request,
                                  ByteBuffer* reply) {
  return std::make_unique<Call>(service_context, request, reply);
}

const std::map<std::string, MakeCall>& WaitingCalls() {
  static const std::map<std::string, MakeCall> calls = {{"AwaitChange", Make<AwaitChangeCall>},
                                                        {"Ask", Make<AskCall>},
                                                        {"DeleteExperiment", Make<DeleteCall>}};
  return calls;
}

// ---- the service -------------------------------------------------------------------------------

// Every method of the .proto, by its descriptor. Those that wait are for gRPC's callbacks, the
// others have a thread each.
class ShirabeService : public grpc::Service {
 public:
  explicit ShirabeService(const ServiceContext& service_context)
      : service_context_(service_context) {
    const auto& service = *client::MethodOf("GetExperiment").service();
    paths_.reserve(service.method_count());  // gRPC keeps the texts where they are
    for (int i = 0; i < service.method_count(); ++i) {
      const Method& method = *service.method(i);
      paths_.push_back(absl::StrCat("/", service.full_name(), "/", method.name()));
      const auto type =
          method.server_streaming() ? RpcMethod::SERVER_STREAMING : RpcMethod::NORMAL_RPC;
      // gRPC takes both over.
      AddMethod(std::make_unique<RpcServiceMethod>(paths_.back().c_str(), type,
                                                   MakeHandler(method).release())
                    .release());
    }
  }

 private:
  using Service = ShirabeService;

  std::unique_ptr<MethodHandler> MakeHandler(const Method& method) {
    const auto waiting = WaitingCalls().find(method.name());
    if (waiting != WaitingCalls().end()) {
      return std::make_unique<grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>>(
          [this, make = waiting->second](auto* context, const ByteBuffer* request,
                                         ByteBuffer* reply) {
            return StartWaiting(context, service_context_, make(service_context_, *request, reply));
          });
    }
    if (method.server_streaming()) {
      return std::make_unique<
          grpc::internal::ServerStreamingHandler<Service, ByteBuffer, ByteBuffer>>(
          [&method](Service* self, ServerContext* context, const ByteBuffer* request,
                    grpc::ServerWriter<ByteBuffer>* writer) {
            return self->Serve(method, context, *request, [writer](const Proto& reply) -> Status {
              if (writer->Write(Pack(reply))) return absl::OkStatus();
              return absl::CancelledError("the caller has gone");
            });
          },
          this);
    }
    return std::make_unique<grpc::internal::RpcMethodHandler<Service, ByteBuffer, ByteBuffer>>(
        [&method](Service* self, ServerContext* context, const ByteBuffer* request,
                  ByteBuffer* reply) {
          return self->Serve(method, context, *request, [reply](const Proto& message) {
            *reply = Pack(message);
            return absl::OkStatus();
          });
        },
        this);
  }

  // Every call begins here: who is it, what may they do, and is it a message that can be believed?
  grpc::Status Serve(const Method& method, ServerContext* context, const ByteBuffer& bytes,
                     const client::Sink& sink) {
    const auto principal = CallerOf(*context, service_context_);
    if (!principal.ok()) return ToGrpc(principal.status());
    const auto share =
        Quota::Acquire(&service_context_.quotas->calls, CallerId(*context, *principal));
    if (!share.ok()) return ToGrpc(share.status());
    const std::unique_ptr<Proto> request(google::protobuf::MessageFactory::generated_factory()
                                             ->GetPrototype(method.input_type())
                                             ->New());
    const Status good = Parse(bytes, *request);
    if (!good.ok()) return ToGrpc(good);
    const auto client = Guard(*service_context_.client, *principal, service_context_.rights);
    const CancelScope scope([context] { return context->IsCancelled(); });
    return ToGrpc(client->Call(method, *request, sink));
  }

  const ServiceContext service_context_;
  std::vector<std::string> paths_;
};

}  // namespace

const std::set<std::string>& WaitingMethods() {
  static const std::set<std::string> methods = [] {
    std::set<std::string> names;
    for (const auto& [name, make] : WaitingCalls()) names.insert(name);
    return names;
  }();
  return methods;
}

std::unique_ptr<grpc::Service> MakeShirabeService(const ServiceContext& service_context) {
  return std::make_unique<ShirabeService>(service_context);
}

}  // namespace shirabe::service
