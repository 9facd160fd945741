#include "service/http/http_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "service/common/metrics.h"
#include "service/http/http_message.h"

namespace shirabe::service {
namespace {

constexpr size_t kLeastRead = 512;  // most connections wait, and need no more
constexpr size_t kLeastBody = 16 << 10;
constexpr size_t kMostRead = 64 << 10;
constexpr size_t kLargeBuffer = 16 << 10;  // what a waiting connection need not keep

std::chrono::microseconds ToTimer(absl::Duration time) { return absl::ToChronoMicroseconds(time); }

std::string_view ViewOf(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

}  // namespace

void SessionHost::Note() const {
  if (metrics == nullptr) return;
  metrics->Set("shirabe_http_connections", {}, static_cast<double>(sessions.size()));
  metrics->Set("shirabe_sse_clients", {}, streams);
}

Session::Session(AnyStream::Socket socket, SessionHost& host, std::string peer)
    : stream_(std::move(socket), host.tls),
      host_(host),
      peer_(std::move(peer)),
      timer_(stream_.get_executor()) {}

void Session::Expire(absl::Duration after) { stream_.lowest().expires_after(ToTimer(after)); }

void Session::Start(ConnectionTable::Seat seat) {
  seat_ = seat;
  host_.sessions.insert(shared_from_this());
  host_.table->Enter(this, peer_, seat);
  host_.Note();
  if (stream_.tls() == nullptr) return ReadHead();
  Expire(host_.limits.handshake);
  stream_.tls()->async_handshake(asio::ssl::stream_base::server,
                                 Bind([](Session& self, Error error) {
                                   if (error) return self.Close();
                                   self.ReadHead();
                                 }));
}

// ---- reading -----------------------------------------------------------------------------------

void Session::ReadOn(void (Session::*then)()) {
  const size_t room = buffer_.capacity() - buffer_.size();
  stream_.async_read_some(buffer_.prepare(std::clamp(room, kLeastRead, kMostRead)),
                          [self = shared_from_this(), then](Error error, size_t bytes) {
                            if (self->state_ == State::kClosed) return;
                            if (error) return self->OnReadError(error);
                            self->buffer_.commit(bytes);
                            (self.get()->*then)();
                          });
}

// The other side has ended in order, or is silent, gone, or in the middle of a request.
void Session::OnReadError(Error error) {
  if (error == asio::error::eof && !begun_ && buffer_.size() == 0) return End();
  Close();
}

// ---- the head of a request ---------------------------------------------------------------------

void Session::ReadHead() {
  if (host_.draining) return End();
  request_ = {};
  reception_ = {};
  body_.reset();
  body_share_.Release();
  begun_ = false;
  state_ = State::kReading;
  if (buffer_.size() == 0 && buffer_.capacity() > kLargeBuffer) buffer_.shrink_to_fit();
  SetStanding(known_ ? Standing::kIdle : Standing::kUnknown);
  Expire(known_ ? host_.limits.idle : host_.limits.header);
  OnHead();
}

void Session::OnHead() {
  if (buffer_.size() > 0 && !std::exchange(begun_, true)) Expire(host_.limits.header);
  auto head = ParseHead(ViewOf(buffer_), {.header_bytes = host_.limits.header_bytes,
                                          .body_bytes = host_.limits.body_bytes});
  if (!head.ok()) return Refuse(head.status());
  if (!*head) return ReadOn(&Session::OnHead);
  TakeHead(*std::move(*head));
}

void Session::TakeHead(RequestHead head) {
  buffer_.consume(head.bytes);
  request_ = std::move(head.request);
  request_.peer = peer_;
  keep_alive_ = head.keep_alive && seat_ == ConnectionTable::Seat::kTable;
  chunked_ = head.http_1_1;
  expects_continue_ = head.expects_continue;
  reception_ = host_.router->Receive(request_);
  if (const Status problem = Admit(head); !problem.ok()) return Refuse(problem);
  if (!reception_.refusal.ok()) {
    // Answered as it is, without its body, after which nothing more can be read.
    if (!head.has_body()) return Work();
    keep_alive_ = false;
    return reception_.no_route ? Work() : Refuse(reception_.refusal);
  }
  if (reception_.known) known_ = true;
  if (known_) SetStanding(Standing::kAtWork);
  body_.emplace(head, FramingLimits{.body_bytes = host_.limits.body_bytes});
  if (head.has_body()) {
    body_share_ = Quota::Take(&host_.quotas->bodies, reception_.caller, 0).value();
  }
  if (const Status problem = TakeBody(); !problem.ok()) return Refuse(problem);
  // A trial that has sent all of it already holds nothing up, and is known to the worker.
  if (reception_.must_ask || (reception_.must_prove && !body_->done())) return Prove();
  AwaitBody();
}

// What its head shows to be no request for us, or one that there is no room for.
Status Session::Admit(const RequestHead& head) {
  if (seat_ == ConnectionTable::Seat::kReserve && !reception_.at_once) {
    return absl::UnavailableError("there are too many connections already: try again");
  }
  if (!head.has_body() || !reception_.refusal.ok() || reception_.takes_body) {
    return absl::OkStatus();
  }
  if (!head.chunked && head.length <= 2) return absl::OkStatus();  // {}
  return absl::InvalidArgumentError(
      absl::StrCat(request_.method, " ", request_.target, " takes no body"));
}

// Whoever is not in our file is asked about before anything of theirs is kept.
void Session::Prove() {
  state_ = State::kWorking;
  const bool taken = RunIn(
      host_.slow, [](Session& self) { return self.host_.router->Prove(self.request_); },
      [](Session& self, const StatusOr<std::string>& caller) {
        if (!caller.ok()) return self.Refuse(caller.status());
        self.reception_.caller = *caller;
        self.known_ = true;
        self.SetStanding(Standing::kAtWork);
        self.AwaitBody();
      });
  if (!taken) Refuse(absl::UnavailableError("the server has too much to do: try again"));
}

// What follows of the request is not read, so there can be no other after it.
void Session::Refuse(const Status& problem) {
  keep_alive_ = false;
  chunked_ = false;
  Send(host_.router->Refuse(request_, problem));
}

// ---- its body ----------------------------------------------------------------------------------

void Session::AwaitBody() {
  if (body_->done()) return OnBody();
  state_ = State::kReading;
  if (!std::exchange(expects_continue_, false)) {
    Expire(host_.limits.body);
    return ReadOn(&Session::OnBody);
  }
  out_ = "HTTP/1.1 100 Continue\r\n\r\n";
  Write([](Session& self, Error error) {
    if (error) return self.Close();
    self.AwaitBody();
  });
}

void Session::OnBody() {
  if (const Status problem = TakeBody(); !problem.ok()) return Refuse(problem);
  if (!body_->done()) return ReadOn(&Session::OnBody);
  request_.body = body_->Release();
  Work();
}

// What has come of it. All together may fill only so much of our memory, and each caller less: what
// counts is what they have sent, not what they say they will.
Status Session::TakeBody() {
  if (body_->done()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t taken, body_->Take(ViewOf(buffer_)));
  buffer_.consume(taken);
  return TooMany(body_share_.Add(static_cast<int64_t>(taken)));
}

void Session::Work() {
  state_ = State::kWorking;
  if (reception_.at_once) return Send(host_.router->Handle(request_));
  std::optional<CallerGone> gone;  // asked only where a reply may take long
  if (reception_.slow) gone.emplace(stream_.lowest().socket().native_handle());
  const bool taken = RunIn(
      reception_.slow ? host_.slow : host_.quick,
      [gone = std::move(gone)](Session& self) {
        std::optional<CancelScope> scope;
        if (gone) scope.emplace(*gone);
        return self.host_.router->Handle(self.request_);
      },
      [](Session& self, HttpReply reply) { self.Send(std::move(reply)); });
  if (taken) return;
  Send(host_.router->Refuse(request_,
                            absl::UnavailableError("the server has too much to do: try again")));
}

}  // namespace shirabe::service
