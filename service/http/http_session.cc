#include "service/http/http_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "service/common/server_metrics.h"
#include "service/http/http_message.h"

namespace shirabe::service {
namespace {

constexpr size_t kMinReadBuffer = 512;  // most connections wait, and need no more
constexpr size_t kMinBodyBuffer = 16 << 10;
constexpr size_t kMaxReadBuffer = 64 << 10;
constexpr size_t kLargeBuffer = 16 << 10;  // what a waiting connection need not keep

std::chrono::microseconds ToTimer(absl::Duration time) { return absl::ToChronoMicroseconds(time); }

std::string_view ViewOf(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

}  // namespace

void SessionHost::UpdateGauges() const {
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

void Session::Start(ConnectionTable::ConnectionSlot slot) {
  slot_ = slot;
  host_.sessions.insert(shared_from_this());
  host_.table->Enter(this, peer_, slot);
  host_.UpdateGauges();
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
  stream_.async_read_some(buffer_.prepare(std::clamp(room, kMinReadBuffer, kMaxReadBuffer)),
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
  request_class_ = {};
  body_.reset();
  body_share_.Release();
  begun_ = false;
  state_ = State::kReading;
  if (buffer_.size() == 0 && buffer_.capacity() > kLargeBuffer) buffer_.shrink_to_fit();
  SetConnectionState(known_ ? ConnectionState::kIdle : ConnectionState::kUnknown);
  Expire(known_ ? host_.limits.idle : host_.limits.header);
  OnHead();
}

void Session::OnHead() {
  if (buffer_.size() > 0 && !std::exchange(begun_, true)) Expire(host_.limits.header);
  auto head = ParseHead(ViewOf(buffer_), {.header_bytes = host_.limits.header_bytes,
                                          .body_bytes = host_.limits.body_bytes});
  if (!head.ok()) return Refuse(head.status());
  if (!*head) return ReadOn(&Session::OnHead);
  HandleHead(*std::move(*head));
}

void Session::HandleHead(RequestHead head) {
  buffer_.consume(head.bytes);
  request_ = std::move(head.request);
  request_.peer = peer_;
  keep_alive_ = head.keep_alive && slot_ == ConnectionTable::ConnectionSlot::kTable;
  chunked_ = head.http_1_1;
  expects_continue_ = head.expects_continue;
  request_class_ = host_.router->Classify(request_);
  if (const Status problem = Admit(head); !problem.ok()) return Refuse(problem);
  if (!request_class_.refusal.ok()) {
    // Answered as it is, without its body, after which nothing more can be read.
    if (!head.has_body()) return Work();
    keep_alive_ = false;
    return request_class_.no_route ? Work() : Refuse(request_class_.refusal);
  }
  if (request_class_.known) known_ = true;
  if (known_) SetConnectionState(ConnectionState::kAtWork);
  body_.emplace(head, FramingLimits{.body_bytes = host_.limits.body_bytes});
  if (head.has_body()) {
    body_share_ = Quota::Acquire(&host_.quotas->bodies, request_class_.caller, 0).value();
  }
  if (const Status problem = ConsumeBody(); !problem.ok()) return Refuse(problem);
  // A trial that has sent all of it already holds nothing up, and is known to the worker.
  if (request_class_.must_ask || (request_class_.must_authenticate && !body_->done()))
    return Authenticate();
  AwaitBody();
}

// What its head shows to be no request for us, or one that there is no room for.
Status Session::Admit(const RequestHead& head) {
  if (slot_ == ConnectionTable::ConnectionSlot::kReserve && !request_class_.at_once) {
    return absl::UnavailableError("there are too many connections already: try again");
  }
  if (!head.has_body() || !request_class_.refusal.ok() || request_class_.takes_body) {
    return absl::OkStatus();
  }
  if (!head.chunked && head.length <= 2) return absl::OkStatus();  // {}
  return absl::InvalidArgumentError(
      absl::StrCat(request_.method, " ", request_.target, " takes no body"));
}

// A caller that is not in our file is looked up before anything it sends is kept.
void Session::Authenticate() {
  state_ = State::kWorking;
  const bool taken = RunIn(
      host_.slow, [](Session& self) { return self.host_.router->Authenticate(self.request_); },
      [](Session& self, const StatusOr<std::string>& caller) {
        if (!caller.ok()) return self.Refuse(caller.status());
        self.request_class_.caller = *caller;
        self.known_ = true;
        self.SetConnectionState(ConnectionState::kAtWork);
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
  if (const Status problem = ConsumeBody(); !problem.ok()) return Refuse(problem);
  if (!body_->done()) return ReadOn(&Session::OnBody);
  request_.body = body_->Release();
  Work();
}

// What has come of it. All together may fill only so much of our memory, and each caller less: what
// counts is what they have sent, not what they say they will.
Status Session::ConsumeBody() {
  if (body_->done()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const size_t taken, body_->Consume(ViewOf(buffer_)));
  buffer_.consume(taken);
  return TooMany(body_share_.Add(static_cast<int64_t>(taken)));
}

void Session::Work() {
  state_ = State::kWorking;
  if (request_class_.at_once) return Send(host_.router->Handle(request_));
  std::optional<CallerDisconnected> gone;  // asked only where a reply may take long
  if (request_class_.slow) gone.emplace(stream_.lowest().socket().native_handle());
  const bool taken = RunIn(
      request_class_.slow ? host_.slow : host_.quick,
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
