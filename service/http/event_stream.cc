#include "service/http/event_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "service/common/change_hub.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kCheckAgain = absl::Seconds(30);

// A token may be revoked, or expire, while its holder follows: it is checked again and again, and
// before anything is sent after a while.
class CheckedSource : public PieceSource {
 public:
  CheckedSource(const Call& call, std::unique_ptr<PieceSource> source, Quota::Share share)
      : tokens_(*call.context.tokens),
        clock_(*call.context.clock),
        principal_(call.principal),
        authorization_(call.request.Header("authorization")),
        peer_(call.request.peer),
        checked_(clock_.Monotonic()),
        source_(std::move(source)),
        share_(std::move(share)) {}

  StatusOr<Piece> Next() override {
    const absl::Duration now = clock_.Monotonic();
    if (now - checked_ >= kCheckAgain) {
      const Status same = CheckCaller();
      if (absl::IsUnauthenticated(same) || absl::IsPermissionDenied(same)) return same;
      if (same.ok()) checked_ = now;
    }
    return source_->Next();
  }
  bool live() const override { return true; }
  absl::Duration Poll() const override { return std::min(source_->Poll(), kCheckAgain); }

 private:
  // That the token is still that of who began to follow: it may be given to another, or, as one
  // that is unknown may be a trial's, seem to be.
  Status CheckCaller() const {
    ASSIGN_OR_RETURN(const Principal now, tokens_.Check(authorization_, peer_));
    if (now.role == principal_.role && now.ns == principal_.ns) return absl::OkStatus();
    return absl::PermissionDeniedError("this token is another caller's by now");
  }

  const Tokens& tokens_;
  Clock& clock_;
  const Principal principal_;
  const std::string authorization_;
  const std::string peer_;
  absl::Duration checked_;
  const std::unique_ptr<PieceSource> source_;
  const Quota::Share share_;
};

}  // namespace

StatusOr<HttpReply> Follow(const Call& call, std::unique_ptr<PieceSource> source) {
  ASSIGN_OR_RETURN(Quota::Share share, call.AcquireStream());
  HttpReply reply{.type = kEventStream};
  reply.source = std::make_unique<CheckedSource>(call, std::move(source), std::move(share));
  return reply;
}

StatusOr<int64_t> FirstRevision(const Call& call) {
  const std::string& last = call.request.Header("last-event-id");
  if (last.empty()) return call.Integer("after", call.context.hub->revision());
  int64_t revision = 0;
  if (absl::SimpleAtoi(last, &revision) && revision >= 0) return revision;
  return BadField("Last-Event-ID", "must be the id of an event, a number, not " + last);
}

Parameter LastEventId() {
  return {.name = "Last-Event-ID",
          .help = "id of the last event seen: goes on after it",
          .in = Parameter::In::kHeader};
}

Parameter AfterRevision() {
  return {.name = "after",
          .help = "a revision, as lists have it: what has changed since; without it, from now on",
          .type = Parameter::Type::kInteger};
}

}  // namespace shirabe::service
