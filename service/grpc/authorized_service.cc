#include "service/grpc/authorized_service.h"

#include <google/protobuf/descriptor.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/text/message_check.h"
#include "grpcpp/support/server_interceptor.h"
#include "service/common/authorization.h"
#include "service/grpc/grpc_caller.h"
#include "service/grpc/grpc_listener.h"
#include "service/http/http_message.h"

namespace shirabe::service {

namespace {

using grpc::internal::MethodHandler;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

constexpr size_t kMaxUncheckedBytes = 64 << 10;  // bytes

// Only a class derived from Service may ask one for its handlers.
class Handlers : public grpc::Service {
 public:
  static MethodHandler* Of(grpc::Service& service, int index) {
    return (service.*(&Handlers::GetHandler))(index);
  }
};

class CheckedHandler : public MethodHandler {
 public:
  CheckedHandler(MethodHandler* inner, const google::protobuf::MethodDescriptor& method,
                 const CallCheck* check)
      : inner_(inner),
        input_(*method.input_type()),
        method_(absl::StrCat(method.service()->full_name(), "/", method.name())),
        check_(check) {}

  // Not yet: the message is kept as it is.
  void* Deserialize(grpc_call* /*call*/, grpc_byte_buffer* message, grpc::Status* /*status*/,
                    void** /*data*/) override {
    return message;
  }

  void RunHandler(const HandlerParameter& call) override {
    auto* message = static_cast<grpc_byte_buffer*>(call.request);
    const auto& context = static_cast<const grpc::ServerContext&>(*call.server_context);
    grpc::Status status = call.status;
    if (status.ok()) status = ToGrpc((*check_)(context, method_));
    if (status.ok()) status = ToGrpc(CheckSize(message));
    void* request = nullptr;
    if (status.ok()) {
      request = inner_->Deserialize(call.call->call(), message, &status, nullptr);
    } else if (message != nullptr) {
      grpc_byte_buffer_destroy(message);
    }
    inner_->RunHandler(
        {call.call, call.server_context, request, status, call.internal_data, call.call_requester});
  }

 private:
  Status CheckSize(grpc_byte_buffer* message) const {
    // Each object takes a byte at least: most messages need not be read for this.
    if (message == nullptr || grpc_byte_buffer_length(message) <= kMaxWireObjects) {
      return absl::OkStatus();
    }
    grpc_byte_buffer_reader reader;
    if (grpc_byte_buffer_reader_init(&reader, message) == 0) {
      return absl::OkStatus();  // for the parser to refuse
    }
    const grpc_slice bytes = grpc_byte_buffer_reader_readall(&reader);
    grpc_byte_buffer_reader_destroy(&reader);
    const Status status = CheckWire(
        input_,
        {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(bytes)), GRPC_SLICE_LENGTH(bytes)});
    grpc_slice_unref(bytes);
    return status;
  }

  MethodHandler* const inner_;
  const google::protobuf::Descriptor& input_;
  const std::string method_;
  const CallCheck* const check_;
};

// Of a method for gRPC's callbacks, which checks for itself: but for messages that are not small it
// is as if there were no such method.
class WaitingHandler : public MethodHandler {
 public:
  explicit WaitingHandler(MethodHandler* inner) : inner_(inner) {}

  void* Deserialize(grpc_call* call, grpc_byte_buffer* message, grpc::Status* status,
                    void** data) override {
    const bool large = grpc_byte_buffer_length(message) > kMaxUncheckedBytes;
    if (large) {
      grpc_byte_buffer_destroy(message);
      message = grpc_raw_byte_buffer_create(nullptr, 0);
    }
    void* request = inner_->Deserialize(call, message, status, data);
    if (large) *status = {grpc::StatusCode::RESOURCE_EXHAUSTED, "the message is too large"};
    return request;
  }
  void RunHandler(const HandlerParameter& call) override { inner_->RunHandler(call); }

 private:
  MethodHandler* const inner_;
};

class CheckedService : public grpc::Service {
 public:
  CheckedService(std::unique_ptr<grpc::Service> inner,
                 const google::protobuf::ServiceDescriptor& descriptor, CallCheck check,
                 const std::set<std::string>& waiting)
      : inner_(std::move(inner)), check_(std::move(check)) {
    paths_.reserve(descriptor.method_count());  // gRPC keeps the texts where they are
    for (int i = 0; i < descriptor.method_count(); ++i) {
      const auto& method = *descriptor.method(i);
      paths_.push_back(absl::StrCat("/", descriptor.full_name(), "/", method.name()));
      const auto type =
          method.server_streaming() ? RpcMethod::SERVER_STREAMING : RpcMethod::NORMAL_RPC;
      MethodHandler* const own = Handlers::Of(*inner_, i);
      const bool waits = waiting.count(method.name()) > 0;
      std::unique_ptr<MethodHandler> handler = std::make_unique<WaitingHandler>(own);
      if (!waits) handler = std::make_unique<CheckedHandler>(own, method, &check_);
      // gRPC takes both over.
      auto added =
          std::make_unique<RpcServiceMethod>(paths_.back().c_str(), type, handler.release());
      if (waits) added->SetServerApiType(RpcServiceMethod::ApiType::CALL_BACK);
      AddMethod(added.release());
    }
  }

 private:
  const std::unique_ptr<grpc::Service> inner_;
  const CallCheck check_;
  std::vector<std::string> paths_;
};

}  // namespace

std::unique_ptr<grpc::Service> Checked(std::unique_ptr<grpc::Service> service,
                                       const google::protobuf::ServiceDescriptor& descriptor,
                                       CallCheck check, const std::set<std::string>& waiting) {
  return std::make_unique<CheckedService>(std::move(service), descriptor, std::move(check),
                                          waiting);
}

namespace {

namespace x = grpc::experimental;

// One call. gRPC makes it when the call comes in and destroys it when nothing of it is left.
class BoundCall : public x::Interceptor {
 public:
  // Without a listener, whatever is answered tells nothing of who asked.
  BoundCall(Quota* quota, GrpcListener* listener, grpc::ServerContextBase* context)
      : quota_(quota), listener_(listener), context_(context) {}

  void Intercept(x::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            x::InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      auto share = Quota::Acquire(quota_, AddressGroup(AddressOfPeer(context_->peer())));
      if (share.ok()) {
        share_ = *std::move(share);
      } else {
        context_->TryCancel();
      }
    }
    if (listener_ != nullptr && IsAnswered(*methods)) listener_->SetKnown(context_->peer());
    methods->Proceed();
  }

 private:
  // Only a caller that was let in gets a message, or hears that all is well.
  static bool IsAnswered(x::InterceptorBatchMethods& methods) {
    return methods.QueryInterceptionHookPoint(x::InterceptionHookPoints::PRE_SEND_MESSAGE) ||
           (methods.QueryInterceptionHookPoint(x::InterceptionHookPoints::PRE_SEND_STATUS) &&
            methods.GetSendStatus().ok());
  }

  Quota* const quota_;
  GrpcListener* const listener_;
  grpc::ServerContextBase* const context_;
  Quota::Share share_;
};

class BoundFactory : public x::ServerInterceptorFactoryInterface {
 public:
  BoundFactory(CallBounds* bounds, GrpcListener* listener) : bounds_(bounds), listener_(listener) {}
  // gRPC takes the object over.
  x::Interceptor* CreateServerInterceptor(x::ServerRpcInfo* info) override {
    const std::string method = info->method();
    Quota* quota = absl::StartsWith(method, "/grpc.")                 ? &bounds_->open
                   : absl::StartsWith(method, "/shirabe.v1.Shirabe/") ? nullptr
                                                                      : &bounds_->others;
    const bool open =
        quota == &bounds_->open || RightsOf(method.substr(1)).audience() == v1::Rights::ANYONE;
    return std::make_unique<BoundCall>(quota, open ? nullptr : listener_, info->server_context())
        .release();
  }

 private:
  CallBounds* const bounds_;
  GrpcListener* const listener_;
};

}  // namespace

std::unique_ptr<x::ServerInterceptorFactoryInterface> BoundCalls(CallBounds* bounds,
                                                                 GrpcListener* listener) {
  return std::make_unique<BoundFactory>(bounds, listener);
}

namespace {

// One call. gRPC makes it when the call comes in and destroys it when nothing of it is left.
class CallCounter : public x::Interceptor {
 public:
  CallCounter(const char* method, Metrics* metrics)
      : method_(method), metrics_(metrics), began_(RealClock()->Monotonic()) {}

  void Intercept(x::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(x::InterceptionHookPoints::PRE_SEND_STATUS)) {
      metrics_->RecordGrpcCall(
          {.method = method_,
           .code = CodeWord(static_cast<absl::StatusCode>(methods->GetSendStatus().error_code())),
           .took = RealClock()->Monotonic() - began_});
    }
    methods->Proceed();
  }

 private:
  const std::string method_;
  Metrics* const metrics_;
  const absl::Duration began_;
};

class CounterFactory : public x::ServerInterceptorFactoryInterface {
 public:
  explicit CounterFactory(Metrics* metrics) : metrics_(metrics) {}
  // gRPC takes the object over.
  x::Interceptor* CreateServerInterceptor(x::ServerRpcInfo* info) override {
    return std::make_unique<CallCounter>(info->method(), metrics_).release();
  }

 private:
  Metrics* const metrics_;
};

}  // namespace

void CountCalls(grpc::ServerBuilder& builder, const CallWatch& watch) {
  std::vector<std::unique_ptr<x::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<CounterFactory>(watch.metrics));
  factories.push_back(BoundCalls(watch.bounds, watch.listener));
  builder.experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace shirabe::service
