// One connection: reads a request, has it answered by a worker, writes the reply, and so on until
// either side has enough. Made by the server for each connection that it accepts; lives in the io
// thread, as long as something of it is under way there, and gives itself up to workers only while
// it waits for them. Who calls is found out from the head of a request, before its body is read;
// whether the server lives is answered in the io thread, whatever the workers do.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/any_stream.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/rate_limits.h"
#include "service/common/connection_table.h"
#include "service/common/long_polls.h"
#include "service/common/suggestion_scheduler.h"
#include "service/common/worker_threads.h"
#include "service/http/http_framing.h"
#include "service/http/http_message.h"
#include "service/http/http_router.h"

namespace shirabe::service {

// SessionHost is what the connections of one HTTP server have in common. Made by the server
// (http_server.cc), which outlives them; used in its io thread, but for what is thread-safe.
class Session;
using SessionPtr = std::shared_ptr<Session>;  // shared: each operation under way keeps it alive

struct SessionHost {
  HttpLimits limits;
  asio::io_context* io = nullptr;
  asio::ssl::context* tls = nullptr;  // null = without
  Router* router = nullptr;
  Workers* quick = nullptr;
  Workers* slow = nullptr;
  LongPollQueue* waits = nullptr;
  Quotas* quotas = nullptr;
  ConnectionTable* table = nullptr;
  Metrics* metrics = nullptr;  // may be null
  Clock* clock = nullptr;
  std::set<SessionPtr> sessions = {};  // all that are open
  int64_t wakes = 0;                   // how often the store has changed
  int streams = 0;                     // event streams open
  bool draining = false;
  std::function<void()> on_last_gone = {};

  void UpdateGauges() const;  // how many there are, in the metrics
};

class Session : public TrackedConnection, public std::enable_shared_from_this<Session> {
 public:
  Session(AnyStream::Socket socket, SessionHost& host, std::string peer);
  // Adds itself to the host, in this slot, and begins.
  void Start(ConnectionTable::ConnectionSlot slot);
  // The store has changed: an event stream that waits looks again.
  void Wake();
  bool waits() const { return state_ == State::kWaiting; }
  // The server ends: what waits for the other side is ended, requests at work are not.
  void Drain();
  // At once, whatever is under way. Nothing is called after it.
  void Close() override;

 private:
  using Error = boost::system::error_code;
  using ConnectionState = ConnectionTable::ConnectionState;
  enum class State { kReading, kWorking, kSuspended, kWriting, kWaiting, kEnding, kClosed };
  // A reply that waits for the store; shared by the wait and the session, of which either may go.
  struct Suspended {
    std::unique_ptr<PendingReply> reply;
    std::atomic<bool> gone = false;
  };

  // http_session.cc: the request.
  void ReadHead();
  void OnHead();  // with what has come of it
  void HandleHead(RequestHead head);
  Status Admit(const RequestHead& head);
  void Authenticate();  // whose token it is
  void AwaitBody();     // and say that it may come
  void OnBody();
  Status ConsumeBody();  // what has come of it
  void ReadOn(void (Session::*then)());
  void OnReadError(Error error);
  void Refuse(const Status& problem);
  void Work();

  // http_session_write.cc: the reply, and the end.
  void Send(HttpReply reply);
  void Suspend(std::unique_ptr<PendingReply> pending);
  void Resume(HttpReply reply);
  void OnSent(Error error);
  void NextPiece();
  void OnPiece(StatusOr<Piece> piece);
  void SendPiece(const Piece& piece);
  void WaitForMore();
  void WatchForEnd();  // of the other side
  void OnReadable();
  void OnTimer();
  void EndReply();
  void End();             // closes TLS, then LingeringClose
  void LingeringClose();  // reads on a little, so that the reply is not lost in a reset
  void DiscardInput(size_t skipped);

  // Defined below: how both of them have something done.
  template <class Then>
  auto Bind(Then then);
  template <class Then>
  void Write(Then then);  // out_
  template <class Call, class Then>
  bool RunIn(Workers* workers, Call call, Then then);
  void Expire(absl::Duration after);
  void SetConnectionState(ConnectionState standing) {
    host_.table->SetConnectionState(this, standing);
  }

  AnyStream stream_;
  SessionHost& host_;
  const std::string peer_;
  State state_ = State::kReading;
  ConnectionTable::ConnectionSlot slot_ = ConnectionTable::ConnectionSlot::kTable;
  bool known_ = false;  // has shown a token that we know
  beast::flat_buffer buffer_;
  bool begun_ = false;              // a request has begun to come in
  std::optional<BodyReader> body_;  // from the end of a head to the reply
  HttpRequest request_;
  RequestClass request_class_;
  bool expects_continue_ = false;
  Quota::Share body_share_;               // the bytes of it that were received
  std::shared_ptr<Suspended> suspended_;  // shared: see there
  int64_t wait_ = 0;                      // at host_.waits
  HttpReply reply_;
  std::string out_;  // what is being written
  bool keep_alive_ = false;
  bool chunked_ = false;    // of a reply with a source
  bool streaming_ = false;  // counted among host_.streams
  bool watched_ = false;    // for the other side's end
  bool last_piece_ = false;
  int64_t wakes_seen_ = 0;
  absl::Duration last_write_ = absl::ZeroDuration();
  asio::basic_waitable_timer<std::chrono::steady_clock,
                             asio::wait_traits<std::chrono::steady_clock>, AnyStream::executor_type>
      timer_;
};

// How a session has something done elsewhere and hears of it: the templates of its class, for the
// two files that define it (http_session.cc, http_session_write.cc).

// Calls `then` in the io thread, with the error, unless the connection is closed by then.
template <class Then>
auto Session::Bind(Then then) {
  return [self = shared_from_this(), then](Error error, auto&&...) {
    if (self->state_ != State::kClosed) then(*self, error);
  };
}

// Sends out_, for as long as a reply may take.
template <class Then>
void Session::Write(Then then) {
  Expire(host_.limits.write);
  last_write_ = host_.clock->Monotonic();
  asio::async_write(stream_, asio::buffer(out_), Bind(then));
}

// Runs `call` in a worker, and `then` with its result in the io thread unless the connection is
// closed by then. False, and nothing is run, if there is too much to do.
template <class Call, class Then>
bool Session::RunIn(Workers* workers, Call call, Then then) {
  stream_.lowest().expires_never();
  return workers->Run(request_class_.caller, [self = shared_from_this(), call, then]() mutable {
    auto result = call(*self);
    asio::io_context& io = *self->host_.io;
    asio::post(io, [self = std::move(self), result = std::move(result), then]() mutable {
      if (self->state_ != State::kClosed) then(*self, std::move(result));
    });
  });
}

// Whether the caller of a request is still connected, for the worker that answers it: asked by
// CancelScope in the thread that works. Made by a session when it hands a request over; keeps a
// descriptor of its own, so that the session may close its socket meanwhile. A copy asks the same
// connection; each copy is used by one thread.
class CallerDisconnected {
 public:
  // `socket` of the connection stays the session's.
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
