// The bytes of one connection to the HTTP server, with or without TLS: reads, writes and ends, each
// within its time. Owned by the connection's session (http_session.h), whose coroutine awaits what
// is below, one at a time; used in the io thread, and closed there at any moment, after which all
// that is awaited fails.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "service/http/any_stream.h"
#include "service/http/http_task.h"

namespace shirabe::service {

class HttpConnection {
 public:
  // Without TLS where `tls` is null; both it and the clock outlive the connection.
  HttpConnection(AnyStream::Socket socket, asio::ssl::context* tls, Clock* clock);

  // Within this time must be over what is awaited from now on, or it fails, and all after it.
  void Expire(absl::Duration after);

  // False if the other side has not made it. At once without TLS.
  Task<bool> Handshake();
  // What comes next: to be awaited, and what that gives goes to Take, which adds it to received().
  // Not a coroutine: this is where connections are when they are idle, thousands of them.
  auto Read() { return stream_.async_read_some(NextSpace(), kAwaited); }
  IoError Take(const std::tuple<IoError, size_t>& read);
  std::string_view received() const;
  void Consume(size_t bytes) { buffer_.consume(bytes); }
  // Returns memory that a connection which waits for its next request need not keep.
  void Shrink();
  // All of it; false if the other side has not taken it.
  Task<bool> Write(std::string text);
  // Ends in order: TLS first; then reads on a little, so that the reply is not lost in a reset.
  Task<void> Finish();

  // At once, whatever is awaited.
  void Close();
  bool closed() const { return closed_; }
  // Whether the other side has finished sending; false where more of it can be read.
  bool HasEnded();
  // Calls `then` when there is something to read, or the end of it, which is not read; never after
  // Close. One at a time.
  template <class Then>
  void OnReadable(Then then) {
    stream_.lowest().socket().async_wait(
        asio::socket_base::wait_read,
        [then = std::move(then)](const IoError& error) { then(!error); });
  }

  IoExecutor executor() { return stream_.get_executor(); }
  int descriptor() { return stream_.lowest().socket().native_handle(); }
  absl::Duration last_write() const { return last_write_; }  // when one began, monotonic

 private:
  beast::flat_buffer::mutable_buffers_type NextSpace();

  AnyStream stream_;
  Clock* const clock_;
  beast::flat_buffer buffer_;
  bool closed_ = false;
  absl::Duration last_write_ = absl::ZeroDuration();
};

}  // namespace shirabe::service
