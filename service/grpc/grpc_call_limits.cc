#include "service/grpc/grpc_call_limits.h"

#include <grpcpp/server_context.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "base/address.h"
#include "base/clock.h"
#include "grpcpp/support/server_interceptor.h"
#include "service/common/authorization.h"
#include "service/grpc/grpc_listener.h"
#include "service/http/http_message.h"

namespace shirabe::service {
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
        quota == &bounds_->open || AccessRuleOf(method.substr(1)).whom == AccessRule::For::kAnyone;
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
