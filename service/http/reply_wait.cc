#include "service/http/reply_wait.h"

#include <utility>

#include "service/common/long_polls.h"
#include "service/http/http_router.h"

namespace shirabe::service {

Task<std::optional<HttpReply>> ReplyWait::Run(std::unique_ptr<PendingReply> pending,
                                              std::string caller) {
  using Reply = std::optional<HttpReply>;
  pending_ = std::move(pending);
  return Await<Reply>([this, caller = std::move(caller)](Resumption<Reply> resume) {
    const LongPollTerms& terms = pending_->terms();
    id_ = queue_->Add({.caller = caller,
                       .experiment = terms.experiment,
                       .patience = terms.patience,
                       .poll = terms.poll,
                       .check = [this, resume](bool last) { return Check(last, resume); }});
  });
}

bool ReplyWait::Check(bool last, const Resumption<std::optional<HttpReply>>& resume) {
  std::optional<HttpReply> reply;
  if (!gone_) {
    reply = router_->TryAnswer(*pending_, last);
    if (!reply && !last) return false;
  }
  pending_ = nullptr;  // here, in a worker: it may hold much
  resume(std::move(reply));
  return true;  // this object may be gone
}

void ReplyWait::Abandon() {
  gone_ = true;
  if (id_ != 0) queue_->CheckNow(id_);
}

}  // namespace shirabe::service
