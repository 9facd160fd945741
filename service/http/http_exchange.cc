#include "service/http/http_exchange.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "service/common/long_polls.h"
#include "service/common/suggestion_scheduler.h"
#include "service/common/worker_threads.h"
#include "service/http/http_router.h"
#include "service/http/session_host.h"

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

// Whether the caller of a request is still connected, for the worker that answers it: asked by
// CancelScope in the thread that works. Keeps a descriptor of its own, so that the connection may
// be closed meanwhile. A copy asks the same connection; each copy is used by one thread.
class CallerDisconnected {
 public:
  // `socket` of the connection stays the connection's.
  explicit CallerDisconnected(int socket)
      : socket_(std::make_shared<Fd>(fcntl(socket, F_DUPFD_CLOEXEC, 0))) {}

  // Looks at most ten times a second. A caller that has finished sending has gone, as for other
  // servers of HTTP; one that has sent its next request already has not.
  bool operator()() {
    const absl::Duration now = RealClock()->Monotonic();
    if (gone_ || now < next_) return gone_;
    next_ = now + absl::Milliseconds(100);
    char byte = 0;
    const ssize_t n = recv(socket_->get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    gone_ = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR && errno != EBADF);
    return gone_;
  }

 private:
  std::shared_ptr<Fd> socket_;  // shared: copied with what a worker is given to do
  absl::Duration next_ = absl::ZeroDuration();
  bool gone_ = false;
};

namespace {

std::string HttpDate(absl::Time now) {
  return absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone());
}

Status TooBusy() { return absl::UnavailableError("the server has too much to do: try again"); }

}  // namespace

Task<AfterReply> Exchange::Run() {
  std::optional<HttpReply> reply;
  if (head_.ok()) {
    request_ = std::move(head_->request);
    reply = co_await Answer(*head_);
  } else {
    reply = Refusal(head_.status());
  }
  if (!reply) co_return AfterReply::kClose;
  co_return co_await Send(*std::move(reply));
}

Task<std::optional<HttpReply>> Exchange::Answer(const RequestHead& head) {
  request_.peer = options_.peer;
  keep_alive_ = head.keep_alive && options_.may_stay;
  chunked_ = head.http_1_1;
  class_ = options_.host->router->Classify(request_);
  if (!options_.may_stay && !class_.when_full) co_return options_.host->RefuseConnection();
  if (const Status problem = Admit(head); !problem.ok()) co_return Refusal(problem);
  if (class_.refusal.ok()) {
    const std::optional<Status> received = co_await Receive(head);
    if (!received) co_return std::nullopt;
    if (!received->ok()) co_return Refusal(*received);
  } else if (head.has_body()) {
    // Answered as it is, without its body, after which nothing more can be read.
    keep_alive_ = false;
    if (!class_.no_route) co_return Refusal(class_.refusal);
  }
  co_return co_await Work();
}

// What its head shows to be no request for us.
Status Exchange::Admit(const RequestHead& head) const {
  if (!head.has_body() || !class_.refusal.ok() || class_.takes_body) return absl::OkStatus();
  if (!head.chunked && head.length <= 2) return absl::OkStatus();  // {}
  return absl::InvalidArgumentError(
      absl::StrCat(request_.method, " ", request_.target, " takes no body"));
}

// What follows of the request is not read, so there can be no other after it.
HttpReply Exchange::Refusal(const Status& problem) {
  keep_alive_ = false;
  chunked_ = false;
  return options_.host->router->Refuse(request_, problem);
}

// ---- the caller, and the body ------------------------------------------------------------------

Task<std::optional<Status>> Exchange::Receive(const RequestHead& head) {
  if (class_.known) options_.owner->SetKnown();
  options_.owner->BeginWork();
  body_.emplace(head, FramingLimits{.body_bytes = options_.host->limits.body_bytes});
  if (head.has_body()) {
    body_share_ = Quota::Acquire(&options_.host->quotas->bodies, class_.caller, 0).value();
  }
  if (const Status problem = ConsumeBody(); !problem.ok()) co_return problem;
  // A trial that has sent all of it already holds nothing up, and is known to the worker.
  if (class_.must_ask || (class_.must_authenticate && !body_->done())) {
    std::optional<Status> caller = co_await Authenticate();
    if (!caller || !caller->ok()) co_return caller;
  }
  if (!body_->done()) {
    std::optional<Status> read = co_await ReadBody(head.expects_continue);
    if (!read || !read->ok()) co_return read;
  }
  request_.body = body_->Release();
  co_return absl::OkStatus();
}

// A caller that is not in our file is looked up before anything it sends is kept.
Task<std::optional<Status>> Exchange::Authenticate() {
  options_.connection->Expire(absl::InfiniteDuration());
  auto look = RunIn(*options_.host->slow, class_.caller,
                    [this] { return options_.host->router->Authenticate(request_); });
  const std::optional<StatusOr<std::string>> caller = co_await std::move(look);
  if (options_.connection->closed()) co_return std::nullopt;
  if (!caller) co_return TooBusy();
  if (!caller->ok()) co_return caller->status();
  class_.caller = **caller;
  options_.owner->SetKnown();
  options_.owner->BeginWork();
  co_return absl::OkStatus();
}

Task<std::optional<Status>> Exchange::ReadBody(bool is_expected) {
  HttpConnection& connection = *options_.connection;
  if (is_expected) {
    connection.Expire(options_.host->limits.write);
    const bool written = co_await connection.Write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!written) co_return std::nullopt;
  }
  connection.Expire(options_.host->limits.body);
  while (!body_->done()) {
    const IoError error = connection.Take(co_await connection.Read());
    if (error) co_return std::nullopt;
    if (const Status problem = ConsumeBody(); !problem.ok()) co_return problem;
  }
  co_return absl::OkStatus();
}

// What has come of it. All together may fill only so much of our memory, and each caller less: what
// counts is what they have sent, not what they say they will.
Status Exchange::ConsumeBody() {
  if (body_->done()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t taken, body_->Consume(options_.connection->received()));
  options_.connection->Consume(taken);
  return TooMany(body_share_.Add(static_cast<int64_t>(taken)));
}

void Exchange::ReleaseBody() {
  body_.reset();
  body_share_.Release();
}

// ---- the reply ---------------------------------------------------------------------------------

Task<std::optional<HttpReply>> Exchange::Work() {
  Router* const router = options_.host->router;
  if (class_.at_once) co_return router->Handle(request_);
  options_.connection->Expire(absl::InfiniteDuration());
  std::optional<CallerDisconnected> gone;  // asked only where a reply may take long
  if (class_.slow) gone.emplace(options_.connection->descriptor());
  auto work = RunIn(class_.slow ? *options_.host->slow : *options_.host->quick, class_.caller,
                    [this, gone = std::move(gone)] {
                      std::optional<CancelScope> scope;
                      if (gone) scope.emplace(*gone);
                      return options_.host->router->Handle(request_);
                    });
  std::optional<HttpReply> reply = co_await std::move(work);
  if (options_.connection->closed()) co_return std::nullopt;
  if (!reply) co_return router->Refuse(request_, TooBusy());
  if (reply->pending == nullptr) co_return reply;
  co_return co_await AwaitReply(std::move(reply->pending));
}

Task<std::optional<HttpReply>> Exchange::AwaitReply(std::unique_ptr<PendingReply> pending) {
  request_.body = {};
  ReleaseBody();
  options_.connection->Expire(absl::InfiniteDuration());
  wait_.emplace(options_.host->router, options_.host->long_polls);
  options_.owner->WatchForEnd();
  std::optional<HttpReply> reply = co_await wait_->Run(std::move(pending), class_.caller);
  wait_.reset();
  if (options_.connection->closed()) co_return std::nullopt;
  co_return reply;
}

Task<AfterReply> Exchange::Send(HttpReply reply) {
  if (class_.must_authenticate && reply.status < 300) options_.owner->SetKnown();
  if (options_.host->draining) keep_alive_ = false;
  ReleaseBody();
  if (reply.source == nullptr || reply.length) chunked_ = false;
  if (reply.source != nullptr && !chunked_ && !reply.length) keep_alive_ = false;
  std::string text = HeadOf(reply, {.keep_alive = keep_alive_,
                                    .chunked = chunked_,
                                    .date = HttpDate(options_.host->clock->Now())});
  if (request_.method == "HEAD") {
    reply.source = nullptr;
  } else if (reply.source == nullptr) {
    text += reply.body;
  }
  reply.body = {};
  request_ = {};
  options_.connection->Expire(options_.host->limits.write);
  const bool written = co_await options_.connection->Write(std::move(text));
  if (!written) co_return AfterReply::kClose;
  if (reply.source != nullptr) co_return co_await SendPieces(std::move(reply.source));
  co_return keep_alive_ ? AfterReply::kNext : AfterReply::kEnd;
}

Task<AfterReply> Exchange::SendPieces(std::unique_ptr<PieceSource> source) {
  pieces_.emplace(PieceWriter::Options{.host = options_.host,
                                       .owner = options_.owner,
                                       .connection = options_.connection,
                                       .source = source.get(),
                                       .chunked = chunked_,
                                       .caller = &class_.caller});
  const bool whole = co_await pieces_->Run();
  pieces_.reset();
  if (!whole) co_return AfterReply::kClose;
  co_return keep_alive_ && !source->live() ? AfterReply::kNext : AfterReply::kEnd;
}

// ---- what happens meanwhile --------------------------------------------------------------------

void Exchange::Wake() {
  if (pieces_) pieces_->Wake();
}

// A follower of events says nothing more: what can be read from it is its end. A client that waits
// for a reply may have sent the next request already.
bool Exchange::EndsWhenReadable() const {
  if (pieces_) return pieces_->live();
  return wait_ && options_.connection->HasEnded();
}

void Exchange::Abandon() {
  if (wait_) wait_->Abandon();
  Wake();
}

namespace {

std::string ErrorEvent(const Status& status) {
  return "event: error\ndata: " + ErrorReply(status).body + "\n";
}

}  // namespace

PieceWriter::PieceWriter(const Options& options)
    : options_(options), live_(options.source->live()), timer_(options.connection->executor()) {
  if (live_) ++options_.host->streams;
  options_.host->UpdateGauges();
}

PieceWriter::~PieceWriter() {
  if (live_) --options_.host->streams;
  options_.host->UpdateGauges();
}

Task<bool> PieceWriter::Run() {
  for (;;) {
    const int64_t wakes = options_.host->wakes;
    const std::optional<Piece> piece = co_await Next();
    if (!piece) co_return false;
    std::string text = Framed(*piece);
    if (!text.empty()) {
      options_.connection->Expire(options_.host->limits.write);
      const bool written = co_await options_.connection->Write(std::move(text));
      if (!written) co_return false;
    }
    if (piece->end) co_return true;
    if (piece->text.empty() && wakes == options_.host->wakes) co_await WaitForMore();
  }
}

Task<std::optional<Piece>> PieceWriter::Next() {
  if (options_.connection->closed()) co_return std::nullopt;
  if (options_.host->draining && live_) co_return Piece{.end = true};
  if (std::exchange(silent_, false)) co_return Piece{.text = ": still here\n\n"};
  options_.connection->Expire(absl::InfiniteDuration());
  Workers& workers = options_.source->slow() ? *options_.host->slow : *options_.host->quick;
  auto next =
      RunIn(workers, *options_.caller, [source = options_.source] { return source->Next(); });
  std::optional<StatusOr<Piece>> piece = co_await std::move(next);
  // A follower that is cut off comes again, and goes on where it was.
  if (!piece || options_.connection->closed()) co_return std::nullopt;
  if (piece->ok()) co_return std::move(**piece);
  if (!live_) co_return std::nullopt;
  co_return Piece{.text = ErrorEvent(piece->status()), .end = true};
}

absl::Duration PieceWriter::Silence() const {
  return options_.host->clock->Monotonic() - options_.connection->last_write();
}

Task<void> PieceWriter::WaitForMore() {
  if (options_.host->draining) co_return;
  if (live_) options_.owner->WatchForEnd();
  const absl::Duration heartbeat = options_.host->limits.heartbeat;
  const absl::Duration beat = std::max(absl::ZeroDuration(), heartbeat - Silence());
  timer_.expires_after(ToTimer(std::min(beat, options_.source->Poll())));
  waits_ = true;
  co_await timer_.async_wait(kAwaited);
  const bool woken = !std::exchange(waits_, false);
  silent_ = live_ && !woken && Silence() >= heartbeat;
}

void PieceWriter::Wake() {
  if (std::exchange(waits_, false)) timer_.cancel();
}

std::string PieceWriter::Framed(const Piece& piece) const {
  if (!options_.chunked) return piece.text;
  std::string text;
  if (!piece.text.empty()) {
    absl::StrAppend(&text, absl::Hex(piece.text.size()), "\r\n", piece.text, "\r\n");
  }
  if (piece.end) text += "0\r\n\r\n";
  return text;
}

}  // namespace shirabe::service
