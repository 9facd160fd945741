#include "service/grpc/grpc_long_poll.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "service/common/long_polls.h"
#include "service/common/suggestion_scheduler.h"
#include "service/common/worker_threads.h"
#include "service/grpc/grpc_caller.h"

namespace shirabe::service {
namespace {

// gRPC calls OnDone once the answer has gone and nothing of the call is under way; until Finish it
// lives for sure, and after it nothing of it may be touched.
class WaitingReactor : public grpc::ServerUnaryReactor {
 public:
  WaitingReactor(grpc::CallbackServerContext* context, const ServiceContext& service_context,
                 std::unique_ptr<WaitingCall> call)
      : context_(context), service_context_(service_context), call_(std::move(call)) {}

  void Start() {
    if (service_context_.workers->Run(LaneOf(*context_, service_context_), [this] { Begin(); }))
      return;
    End(absl::UnavailableError("the server has too much to do: try again"));
  }

  void OnCancel() override {
    its_->cancelled = true;
    if (const int64_t id = its_->wait; id > 0) service_context_.long_polls->CheckNow(id);
  }
  void OnDone() override { const std::unique_ptr<WaitingReactor> self(this); }

 private:
  // What outlives the call for a moment.
  struct Shared {
    std::atomic<bool> cancelled = false;
    std::atomic<int64_t> wait = 0;
  };

  void Begin() {
    if (auto answer = TryBegin()) return End(*answer);
    const auto its = its_;
    LongPollQueue* const long_polls = service_context_.long_polls;
    const LongPollTerms terms = call_->terms();
    const int64_t id = long_polls->Add({.caller = lane_,
                                        .experiment = terms.experiment,
                                        .patience = terms.patience,
                                        .poll = terms.poll,
                                        .check = [this](bool last) { return TryAnswer(last); }});
    // From here on it may be over.
    its->wait = id;
    if (its->cancelled) long_polls->CheckNow(id);
  }

  std::optional<Status> TryBegin() {
    const auto principal = CallerOf(*context_, service_context_);
    if (!principal.ok()) return principal.status();
    lane_ = CallerId(*context_, principal);
    auto share = Quota::Acquire(&service_context_.quotas->waits, lane_);
    if (!share.ok()) return share.status();
    share_ = *std::move(share);
    return call_->Begin(Guard(*service_context_.client, *principal, service_context_.rights));
  }

  bool TryAnswer(bool last) {
    std::optional<Status> answer;
    if (its_->cancelled) answer = absl::CancelledError("the caller has gone");
    if (!answer) answer = call_->TryAnswer(last);
    if (!answer) return false;
    End(*answer);
    return true;
  }

  void End(const Status& status) {
    call_ = nullptr;
    share_.Release();
    Finish(ToGrpc(status));
  }

  grpc::CallbackServerContext* const context_;
  const ServiceContext& service_context_;
  std::unique_ptr<WaitingCall> call_;
  std::string lane_;
  Quota::Share share_;
  const std::shared_ptr<Shared> its_ = std::make_shared<Shared>();  // shared: see there
};

}  // namespace

grpc::ServerUnaryReactor* StartWaiting(grpc::CallbackServerContext* context,
                                       const ServiceContext& service_context,
                                       std::unique_ptr<WaitingCall> call) {
  // gRPC says with OnDone when it is to go.
  auto* reactor =
      std::make_unique<WaitingReactor>(context, service_context, std::move(call)).release();
  reactor->Start();
  return reactor;
}

}  // namespace shirabe::service
