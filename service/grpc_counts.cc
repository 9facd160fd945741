#include "service/grpc_counts.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "grpcpp/support/server_interceptor.h"
#include "service/http_errors.h"

namespace shirabe::service {
namespace {

namespace x = grpc::experimental;

// One call. gRPC makes it when the call comes in and destroys it when nothing of it is left.
class CallCounter : public x::Interceptor {
 public:
  CallCounter(const char* method, Metrics* metrics)
      : method_(method), metrics_(metrics), began_(RealClock()->Monotonic()) {}

  void Intercept(x::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(x::InterceptionHookPoints::PRE_SEND_STATUS)) {
      metrics_->NoteGrpc(
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
