#include "service/http_session.h"

#include <algorithm>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "service/http_errors.h"
#include "service/metrics.h"

namespace shirabe::service {
namespace {

namespace http = beast::http;

constexpr absl::Duration kLinger = absl::Seconds(2);
constexpr size_t kMostSkipped = 8 << 20;
constexpr size_t kMostBodyBytes = 256 << 20;  // of all requests under way
constexpr size_t kLargeBuffer = 16 << 10;     // what a waiting connection need not keep

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

std::chrono::microseconds ToTimer(absl::Duration time) { return absl::ToChronoMicroseconds(time); }

// Why a request could not be read, for whoever sent it; OK where there is nobody to tell.
Status ReadProblem(const boost::system::error_code& error, const HttpLimits& limits) {
  if (error == http::error::body_limit) {
    return WithHttpStatus(absl::InvalidArgumentError(
                              absl::StrCat("the body has more than ", limits.body_bytes, " bytes")),
                          413);
  }
  if (error == http::error::header_limit) {
    return WithHttpStatus(absl::InvalidArgumentError(absl::StrCat("the header has more than ",
                                                                  limits.header_bytes, " bytes")),
                          431);
  }
  const bool ended = error == http::error::end_of_stream || error == http::error::partial_message;
  if (ended || error.category() != http::make_error_code(http::error::bad_method).category()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("this is no HTTP/1.1 request: " + error.message());
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

template <class Then>
auto Session::Bind(Then then) {
  return [self = shared_from_this(), then](Error error, auto&&...) {
    if (self->state_ != State::kClosed) then(*self, error);
  };
}

template <class Then>
void Session::Write(Then then) {
  Expire(host_.limits.write);
  last_write_ = host_.clock->Monotonic();
  asio::async_write(stream_, asio::buffer(out_), Bind(then));
}

void Session::Expire(absl::Duration after) { stream_.lowest().expires_after(ToTimer(after)); }

void Session::Start() {
  host_.sessions.insert(shared_from_this());
  host_.Note();
  if (stream_.tls() == nullptr) return ReadHeader();
  Expire(host_.limits.handshake);
  stream_.tls()->async_handshake(asio::ssl::stream_base::server,
                                 Bind([](Session& self, Error error) {
                                   if (error) return self.Close();
                                   self.ReadHeader();
                                 }));
}

// ---- the request -------------------------------------------------------------------------------

void Session::ReadHeader() {
  if (host_.draining) return End();
  request_ = {};
  state_ = State::kReading;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(host_.limits.header_bytes));
  parser_->body_limit(host_.limits.body_bytes);
  if (buffer_.size() == 0 && buffer_.capacity() > kLargeBuffer) buffer_.shrink_to_fit();
  Expire(host_.limits.header);
  http::async_read_header(stream_, buffer_, *parser_,
                          Bind([](Session& self, Error error) { self.OnHeader(error); }));
}

void Session::OnHeader(Error error) {
  if (error) return Refuse(error);
  TakeHead();
  if (!parser_->is_done() && !host_.router->CheckHead(request_).ok()) {
    // Answered as it is, without its body, after which nothing more can be read.
    keep_alive_ = false;
    return Work();
  }
  if (const Status problem = CheckBody(); !problem.ok()) return RefuseWith(problem);
  const auto expect = parser_->get()[http::field::expect];
  if (beast::iequals(expect, "100-continue") && !parser_->is_done()) return Continue();
  ReadBody();
}

void Session::TakeHead() {
  const auto& message = parser_->get();
  request_ = {};
  request_.method = std::string(message.method_string());
  request_.target = std::string(message.target());
  for (const auto& field : message) {
    request_.headers.emplace_back(absl::AsciiStrToLower(std::string(field.name_string())),
                                  std::string(field.value()));
  }
  request_.peer = peer_;
  keep_alive_ = message.keep_alive();
  chunked_ = message.version() >= 11;
}

// Before a body is read: all together may fill only so much of our memory.
Status Session::CheckBody() {
  if (parser_->is_done()) return absl::OkStatus();
  const size_t bytes = parser_->content_length().value_or(host_.limits.body_bytes);
  if (host_.body_bytes + bytes > kMostBodyBytes) {
    return absl::UnavailableError("the server is reading too much already: try again");
  }
  body_bytes_ = bytes;
  host_.body_bytes += bytes;
  return absl::OkStatus();
}

void Session::Continue() {
  out_ = "HTTP/1.1 100 Continue\r\n\r\n";
  Write([](Session& self, Error error) {
    if (error) return self.Close();
    self.ReadBody();
  });
}

void Session::ReadBody() {
  Expire(host_.limits.body);
  http::async_read(stream_, buffer_, *parser_,
                   Bind([](Session& self, Error error) { self.OnBody(error); }));
}

void Session::OnBody(Error error) {
  if (error) return Refuse(error);
  request_.body = std::move(parser_->get().body());
  parser_.reset();
  Work();
}

void Session::Refuse(Error error) {
  const Status problem = ReadProblem(error, host_.limits);
  if (problem.ok()) {
    // The other side has ended in order, or is silent, gone, or in the middle of a request.
    return error == http::error::end_of_stream ? End() : Close();
  }
  RefuseWith(problem);
}

// What follows of the request is not read, so there can be no other after it.
void Session::RefuseWith(const Status& problem) {
  keep_alive_ = false;
  chunked_ = false;
  Send(ErrorReply(problem));
}

void Session::Work() {
  state_ = State::kWorking;
  stream_.lowest().expires_never();
  Workers* workers = host_.router->IsSlow(request_) ? host_.slow : host_.quick;
  const bool taken = workers->Run([self = shared_from_this()]() mutable {
    HttpReply reply = self->host_.router->Handle(self->request_);
    asio::io_context& io = *self->host_.io;
    asio::post(io, [self = std::move(self), reply = std::move(reply)]() mutable {
      if (self->state_ != State::kClosed) self->Send(std::move(reply));
    });
  });
  if (taken) return;
  Send(ErrorReply(absl::UnavailableError("the server has too much to do: try again")));
}

// ---- the reply ---------------------------------------------------------------------------------

void Session::Send(HttpReply reply) {
  state_ = State::kWriting;
  reply_ = std::move(reply);
  if (host_.draining) keep_alive_ = false;
  host_.body_bytes -= std::exchange(body_bytes_, 0);
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

void Session::OnSent(Error error) {
  if (error) return Close();
  out_ = {};
  if (reply_.source == nullptr) return EndReply();
  if (reply_.source->live() && !std::exchange(streaming_, true)) ++host_.streams;
  host_.Note();
  NextPiece();
}

void Session::NextPiece() {
  if (host_.draining && reply_.source->live()) return SendPiece({.end = true});
  state_ = State::kWorking;
  wakes_seen_ = host_.wakes;
  stream_.lowest().expires_never();
  const bool taken = host_.quick->Run([self = shared_from_this()]() mutable {
    StatusOr<Piece> piece = self->reply_.source->Next();
    asio::io_context& io = *self->host_.io;
    asio::post(io, [self = std::move(self), piece = std::move(piece)]() mutable {
      if (self->state_ != State::kClosed) self->OnPiece(std::move(piece));
    });
  });
  if (!taken) Close();  // whoever follows comes again, and goes on where he was
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
  if (!watched_ && reply_.source->live()) WatchForEnd();
  const absl::Duration silent = host_.clock->Monotonic() - last_write_;
  const absl::Duration beat = std::max(absl::ZeroDuration(), host_.limits.heartbeat - silent);
  timer_.expires_after(ToTimer(std::min(beat, reply_.source->Poll())));
  timer_.async_wait(Bind([](Session& self, Error error) {
    if (!error && self.state_ == State::kWaiting) self.OnTimer();
  }));
}

void Session::OnTimer() {
  const bool due = host_.clock->Monotonic() - last_write_ >= host_.limits.heartbeat;
  if (!due || !reply_.source->live()) return NextPiece();
  SendPiece({.text = ": still here\n\n"});
}

// Who follows events says nothing more: what can be read from him is his end.
void Session::WatchForEnd() {
  watched_ = true;
  stream_.lowest().socket().async_wait(asio::socket_base::wait_read,
                                       Bind([](Session& self, Error error) {
                                         if (!error && self.streaming_) self.Close();
                                       }));
}

void Session::Wake() {
  if (state_ != State::kWaiting) return;
  timer_.cancel();
  NextPiece();
}

void Session::EndReply() {
  reply_ = {};
  last_piece_ = false;
  if (std::exchange(streaming_, false)) --host_.streams;
  if (watched_) return End();  // the watch cannot be taken back
  if (keep_alive_) return ReadHeader();
  End();
}

// ---- the end -----------------------------------------------------------------------------------

void Session::Drain() {
  if (state_ == State::kReading && (!parser_ || !parser_->got_some())) return Close();
  if (state_ == State::kWaiting) Wake();
}

void Session::End() {
  state_ = State::kEnding;
  Expire(kLinger);
  if (stream_.tls() == nullptr) return Linger();
  stream_.tls()->async_shutdown(Bind([](Session& self, Error) { self.Close(); }));
}

void Session::Linger() {
  Error ignored;
  stream_.lowest().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  SkipRest(0);
}

void Session::SkipRest(size_t skipped) {
  if (skipped > kMostSkipped) return Close();
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kLargeBuffer),
                          [self = shared_from_this(), skipped](Error error, size_t bytes) {
                            if (self->state_ == State::kClosed) return;
                            if (error) return self->Close();
                            self->SkipRest(skipped + bytes);
                          });
}

void Session::Close() {
  if (std::exchange(state_, State::kClosed) == State::kClosed) return;
  if (std::exchange(streaming_, false)) --host_.streams;
  host_.body_bytes -= std::exchange(body_bytes_, 0);
  Error ignored;
  timer_.cancel();
  stream_.lowest().cancel();
  stream_.lowest().socket().close(ignored);
  const SessionPtr self = shared_from_this();
  host_.sessions.erase(self);
  host_.Note();
  if (host_.sessions.empty() && host_.on_last_gone) host_.on_last_gone();
}

}  // namespace shirabe::service
