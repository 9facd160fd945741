// The second half of a connection's life: replies, at once, in pieces or when the store has what
// they wait for; and its end.
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/http/http_message.h"
#include "service/http/http_session.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kLingeringCloseTimeout = absl::Seconds(2);
constexpr size_t kMaxDiscarded = 8 << 20;
constexpr size_t kSkipBuffer = 16 << 10;

std::string HttpDate(absl::Time now) {
  return absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone());
}

// 4\r\ntext\r\n
std::string Chunk(const std::string& text) {
  return absl::StrCat(absl::Hex(text.size()), "\r\n", text, "\r\n");
}

std::string ErrorEvent(const Status& status) {
  return "event: error\ndata: " + ErrorReply(status).body + "\n";
}

}  // namespace

void Session::Send(HttpReply reply) {
  if (reply.pending != nullptr) return Suspend(std::move(reply.pending));
  state_ = State::kWriting;
  if (request_class_.must_authenticate && reply.status < 300) known_ = true;
  reply_ = std::move(reply);
  if (host_.draining) keep_alive_ = false;
  body_.reset();
  body_share_.Release();
  const bool head_only = request_.method == "HEAD";
  if (reply_.source == nullptr) chunked_ = false;
  if (reply_.source != nullptr && !chunked_) keep_alive_ = false;
  out_ = HeadOf(
      reply_,
      {.keep_alive = keep_alive_, .chunked = chunked_, .date = HttpDate(host_.clock->Now())});
  if (head_only) reply_.source = nullptr;
  if (!head_only && reply_.source == nullptr) out_ += reply_.body;
  reply_.body = {};
  request_ = {};
  Write([](Session& self, Error error) { self.OnSent(error); });
}

// ---- replies that wait -------------------------------------------------------------------------

// Nothing of it is in a thread from here to Resume.
void Session::Suspend(std::unique_ptr<PendingReply> pending) {
  state_ = State::kSuspended;
  request_.body = {};
  body_.reset();
  body_share_.Release();
  stream_.lowest().expires_never();
  WatchForEnd();
  LongPoll wait{.caller = request_class_.caller,
                .experiment = pending->experiment,
                .patience = pending->patience,
                .poll = pending->poll,
                .check = {}};
  suspended_ = std::make_shared<Suspended>();  // shared: see http_session.h
  suspended_->reply = std::move(pending);
  wait.check = [self = shared_from_this(), its = suspended_](bool last) {
    std::optional<HttpReply> reply;
    if (!its->gone) {
      reply = self->host_.router->TryAnswer(*its->reply, last);
      if (!reply) return false;
    }
    its->reply = nullptr;
    if (!reply) return true;
    asio::post(*self->host_.io, [self, reply = *std::move(reply)]() mutable {
      if (self->state_ == State::kSuspended) self->Resume(std::move(reply));
    });
    return true;
  };
  wait_ = host_.waits->Add(std::move(wait));
}

void Session::Resume(HttpReply reply) {
  suspended_ = nullptr;
  Send(std::move(reply));
}

// ---- replies in pieces -------------------------------------------------------------------------

void Session::OnSent(Error error) {
  if (error) return Close();
  out_ = {};
  if (reply_.source == nullptr) return EndReply();
  if (reply_.source->live() && !std::exchange(streaming_, true)) ++host_.streams;
  host_.UpdateGauges();
  NextPiece();
}

void Session::NextPiece() {
  if (host_.draining && reply_.source->live()) return SendPiece({.end = true});
  state_ = State::kWorking;
  wakes_seen_ = host_.wakes;
  const bool taken = RunIn(
      host_.quick, [](Session& self) { return self.reply_.source->Next(); },
      [](Session& self, StatusOr<Piece> piece) { self.OnPiece(std::move(piece)); });
  if (!taken) Close();  // the follower comes again, and goes on where it was
}

void Session::OnPiece(StatusOr<Piece> piece) {
  if (!piece.ok()) {
    if (!reply_.source->live()) return Close();  // seen by the reader: the last chunk is missing
    return SendPiece({.text = ErrorEvent(piece.status()), .end = true});
  }
  if (!piece->text.empty() || piece->end) return SendPiece(*piece);
  if (wakes_seen_ != host_.wakes) return NextPiece();
  WaitForMore();
}

void Session::SendPiece(const Piece& piece) {
  state_ = State::kWriting;
  last_piece_ = piece.end;
  out_ = chunked_ && !piece.text.empty() ? Chunk(piece.text) : piece.text;
  if (chunked_ && piece.end) out_ += "0\r\n\r\n";
  if (out_.empty()) return EndReply();
  Write([](Session& self, Error error) {
    if (error) return self.Close();
    self.out_ = {};
    if (self.last_piece_) return self.EndReply();
    self.NextPiece();
  });
}

void Session::WaitForMore() {
  state_ = State::kWaiting;
  if (host_.draining) return NextPiece();
  if (reply_.source->live()) WatchForEnd();
  const absl::Duration silent = host_.clock->Monotonic() - last_write_;
  const absl::Duration beat = std::max(absl::ZeroDuration(), host_.limits.heartbeat - silent);
  timer_.expires_after(absl::ToChronoMicroseconds(std::min(beat, reply_.source->Poll())));
  timer_.async_wait(Bind([](Session& self, Error error) {
    if (!error && self.state_ == State::kWaiting) self.OnTimer();
  }));
}

void Session::OnTimer() {
  const bool due = host_.clock->Monotonic() - last_write_ >= host_.limits.heartbeat;
  if (!due || !reply_.source->live()) return NextPiece();
  SendPiece({.text = ": still here\n\n"});
}

void Session::WatchForEnd() {
  if (std::exchange(watched_, true)) return;
  stream_.lowest().socket().async_wait(asio::socket_base::wait_read,
                                       Bind([](Session& self, Error error) {
                                         self.watched_ = false;
                                         if (!error) self.OnReadable();
                                       }));
}

// A follower of events says nothing more: what can be read from it is its end. A client that waits
// for a reply may have sent the next request already.
void Session::OnReadable() {
  if (streaming_) return Close();
  if (state_ != State::kSuspended) return;
  char byte = 0;
  const int fd = stream_.lowest().socket().native_handle();
  if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) Close();
}

void Session::Wake() {
  if (state_ != State::kWaiting) return;
  timer_.cancel();
  NextPiece();
}

void Session::EndReply() {
  const bool followed = reply_.source != nullptr && reply_.source->live();
  reply_ = {};
  last_piece_ = false;
  if (std::exchange(streaming_, false)) --host_.streams;
  if (!followed && keep_alive_) return ReadHead();
  End();
}

// ---- the end -----------------------------------------------------------------------------------

void Session::Drain() {
  if (state_ == State::kReading && !begun_) return Close();
  if (state_ == State::kWaiting) Wake();
}

void Session::End() {
  state_ = State::kEnding;
  SetConnectionState(ConnectionState::kUnknown);
  Expire(kLingeringCloseTimeout);
  if (stream_.tls() == nullptr) return LingeringClose();
  stream_.tls()->async_shutdown(Bind([](Session& self, Error) { self.Close(); }));
}

void Session::LingeringClose() {
  Error ignored;
  stream_.lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  DiscardInput(0);
}

void Session::DiscardInput(size_t skipped) {
  if (skipped > kMaxDiscarded) return Close();
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kSkipBuffer),
                          [self = shared_from_this(), skipped](Error error, size_t bytes) {
                            if (self->state_ == State::kClosed) return;
                            if (error) return self->Close();
                            self->DiscardInput(skipped + bytes);
                          });
}

void Session::Close() {
  if (std::exchange(state_, State::kClosed) == State::kClosed) return;
  if (std::exchange(streaming_, false)) --host_.streams;
  body_share_.Release();
  Error ignored;
  timer_.cancel();
  stream_.lowest().cancel();
  stream_.lowest().socket().close(ignored);
  if (suspended_ != nullptr) {
    suspended_->gone = true;
    host_.waits->CheckNow(wait_);
    suspended_ = nullptr;
  }
  host_.table->Leave(this);
  const SessionPtr self = shared_from_this();
  host_.sessions.erase(self);
  host_.UpdateGauges();
  if (host_.sessions.empty() && host_.on_last_gone) host_.on_last_gone();
}

}  // namespace shirabe::service
