// Whether the caller of a request is still connected, for the worker that answers it: asked by
// CancelScope in the thread that works. Made by an exchange (http_exchange.cc) when it hands a
// request over; keeps a descriptor of its own, so that the connection may be closed meanwhile. A
// copy asks the same connection; each copy is used by one thread.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/file_io.h"

namespace shirabe::service {

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

}  // namespace shirabe::service
