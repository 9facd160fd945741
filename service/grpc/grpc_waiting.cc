#include "service/grpc/grpc_waiting.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "service/common/http_workers.h"
#include "service/common/suggestion_turns.h"
#include "service/common/waits.h"
#include "service/grpc/grpc_caller.h"

namespace shirabe::service {
namespace {

// gRPC calls OnDone once the answer has gone and nothing of the call is under way; until Finish it
// lives for sure, and after it nothing of it may be touched.
class WaitingReactor : public grpc::ServerUnaryReactor {
 public:
  WaitingReactor(grpc::CallbackServerContext* context, const Door& door,
                 std::unique_ptr<WaitingCall> call)
      : context_(context), door_(door), call_(std::move(call)) {}

  void Start() {
    if (door_.workers->Run(LaneOf(*context_, door_), [this] { Begin(); })) return;
    End(absl::UnavailableError("the server has too much to do: try again"));
  }

  void OnCancel() override {
    its_->cancelled = true;
    if (const int64_t id = its_->wait; id > 0) door_.waits->Hurry(id);
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
    Waits* const waits = door_.waits;
    const int64_t id = waits->Add({.caller = lane_,
                                   .experiment = call_->experiment,
                                   .patience = call_->patience,
                                   .poll = call_->poll,
                                   .look = [this](bool last) { return Look(last); }});
    // From here on it may be over.
    its->wait = id;
    if (its->cancelled) waits->Hurry(id);
  }

  std::optional<Status> TryBegin() {
    const auto principal = CallerOf(*context_, door_);
    if (!principal.ok()) return principal.status();
    lane_ = CallerId(*context_, principal);
    auto share = Quota::Take(&door_.quotas->waits, lane_);
    if (!share.ok()) return share.status();
    share_ = *std::move(share);
    if (!call_->valid.ok()) return call_->valid;
    return call_->Begin(Guard(*door_.client, *principal, door_.rights));
  }

  bool Look(bool last) {
    std::optional<Status> answer;
    if (its_->cancelled) answer = absl::CancelledError("the caller has gone");
    if (!answer) answer = call_->Look(last);
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
  const Door& door_;
  std::unique_ptr<WaitingCall> call_;
  std::string lane_;
  Quota::Share share_;
  const std::shared_ptr<Shared> its_ = std::make_shared<Shared>();  // shared: see there
};

}  // namespace

grpc::ServerUnaryReactor* StartWaiting(grpc::CallbackServerContext* context, const Door& door,
                                       std::unique_ptr<WaitingCall> call) {
  // gRPC says with OnDone when it is to go.
  auto* reactor = std::make_unique<WaitingReactor>(context, door, std::move(call)).release();
  reactor->Start();
  return reactor;
}

}  // namespace shirabe::service
