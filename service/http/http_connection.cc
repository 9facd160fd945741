#include "service/http/http_connection.h"

#include <sys/socket.h>

#include <algorithm>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

namespace shirabe::service {
namespace {

constexpr size_t kMinReadBuffer = 512;  // most connections wait, and need no more
constexpr size_t kMaxReadBuffer = 64 << 10;
constexpr size_t kLargeBuffer = 16 << 10;  // what a waiting connection need not keep
constexpr absl::Duration kLingeringCloseTimeout = absl::Seconds(2);
constexpr size_t kMaxDiscarded = 8 << 20;
constexpr size_t kDiscardBuffer = 16 << 10;

}  // namespace

HttpConnection::HttpConnection(AnyStream::Socket socket, asio::ssl::context* tls, Clock* clock)
    : stream_(std::move(socket), tls), clock_(clock) {}

void HttpConnection::Expire(absl::Duration after) {
  if (after == absl::InfiniteDuration()) return stream_.lowest().expires_never();
  stream_.lowest().expires_after(ToTimer(after));
}

Task<bool> HttpConnection::Handshake() {
  if (stream_.tls() == nullptr) co_return true;
  const auto [error] = co_await stream_.async_handshake(kAwaited);
  co_return !error && !closed_;
}

std::string_view HttpConnection::received() const {
  return {static_cast<const char*>(buffer_.data().data()), buffer_.size()};
}

void HttpConnection::Shrink() {
  if (buffer_.size() == 0 && buffer_.capacity() > kLargeBuffer) buffer_.shrink_to_fit();
}

beast::flat_buffer::mutable_buffers_type HttpConnection::NextSpace() {
  const size_t room = buffer_.capacity() - buffer_.size();
  return buffer_.prepare(std::clamp(room, kMinReadBuffer, kMaxReadBuffer));
}

IoError HttpConnection::Take(const std::tuple<IoError, size_t>& read) {
  const auto& [error, bytes] = read;
  if (closed_) return asio::error::operation_aborted;
  if (!error) buffer_.commit(bytes);
  return error;
}

Task<bool> HttpConnection::Write(std::string text) {
  last_write_ = clock_->Monotonic();
  const auto [error, bytes] = co_await asio::async_write(stream_, asio::buffer(text), kAwaited);
  co_return !error && !closed_;
}

Task<void> HttpConnection::Finish() {
  Expire(kLingeringCloseTimeout);
  if (stream_.tls() != nullptr) {
    co_await stream_.async_shutdown(kAwaited);
    co_return;
  }
  IoError ignored;
  stream_.lowest().socket().shutdown(asio::socket_base::shutdown_send, ignored);
  for (size_t discarded = 0; !closed_ && discarded <= kMaxDiscarded;) {
    buffer_.clear();
    const auto space = buffer_.prepare(kDiscardBuffer);
    const auto [error, bytes] = co_await stream_.async_read_some(space, kAwaited);
    if (error) co_return;
    discarded += bytes;
  }
}

void HttpConnection::Close() {
  if (std::exchange(closed_, true)) return;
  IoError ignored;
  stream_.lowest().cancel();
  stream_.lowest().socket().close(ignored);
}

bool HttpConnection::HasEnded() {
  char byte = 0;
  return recv(descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

}  // namespace shirabe::service
