#include "service/grpc_bounds.h"

#include <grpcpp/server_context.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "base/address.h"

namespace shirabe::service {
namespace {

namespace x = grpc::experimental;

// One call. gRPC makes it when the call comes in and destroys it when nothing of it is left.
class BoundCall : public x::Interceptor {
 public:
  BoundCall(Quota* quota, grpc::ServerContextBase* context) : quota_(quota), context_(context) {}

  void Intercept(x::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            x::InterceptionHookPoints::POST_RECV_INITIAL_METADATA)) {
      auto share = Quota::Take(quota_, AddressGroup(AddressOfPeer(context_->peer())));
      if (share.ok()) {
        share_ = *std::move(share);
      } else {
        context_->TryCancel();
      }
    }
    methods->Proceed();
  }

 private:
  Quota* const quota_;
  grpc::ServerContextBase* const context_;
  Quota::Share share_;
};

class BoundFactory : public x::ServerInterceptorFactoryInterface {
 public:
  explicit BoundFactory(CallBounds* bounds) : bounds_(bounds) {}
  // gRPC takes the object over.
  x::Interceptor* CreateServerInterceptor(x::ServerRpcInfo* info) override {
    const std::string method = info->method();
    Quota* quota = absl::StartsWith(method, "/grpc.")                 ? &bounds_->open
                   : absl::StartsWith(method, "/shirabe.v1.Shirabe/") ? nullptr
                                                                      : &bounds_->others;
    return std::make_unique<BoundCall>(quota, info->server_context()).release();
  }

 private:
  CallBounds* const bounds_;
};

}  // namespace

std::unique_ptr<x::ServerInterceptorFactoryInterface> BoundCalls(CallBounds* bounds) {
  return std::make_unique<BoundFactory>(bounds);
}

}  // namespace shirabe::service
