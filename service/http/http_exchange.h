// One request and its reply, on a connection that has read the request's head: is it one for us,
// whose is it, its body, what a worker makes of it, and the reply, at once, in pieces or when the
// store has what it waits for. Made by the connection's session (http_session.h), whose coroutine
// awaits it; used in the io thread. Who calls is found out before the body is read; whether the
// server lives is answered in the io thread, whatever the workers do.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/rate_limits.h"
#include "base/status.h"
#include "service/http/http_connection.h"
#include "service/http/http_framing.h"
#include "service/http/http_message.h"
#include "service/http/http_router.h"
#include "service/http/http_task.h"

namespace shirabe::service {

class ExchangeOwner;
struct SessionHost;

// A reply that waits for the store, as a coroutine awaits it: nothing of it is in a thread until it
// is there, its time is up, or its caller has gone. Made by an exchange for one reply; used in the
// io thread, but for the looks, which workers take one at a time.
class ReplyWait {
 public:
  // Both outlive it.
  ReplyWait(Router* router, LongPollQueue* queue) : router_(router), queue_(queue) {}

  // What the pending reply has come to; nothing if its caller has gone. Awaited once.
  Task<std::optional<HttpReply>> Run(std::unique_ptr<PendingReply> pending, std::string caller);
  // Its caller has gone: it is over soon.
  void Abandon();

 private:
  bool Check(bool last, const Resumption<std::optional<HttpReply>>& resume);

  Router* const router_;
  LongPollQueue* const queue_;
  std::unique_ptr<PendingReply> pending_;
  std::atomic<bool> gone_ = false;
  int64_t id_ = 0;  // in the queue; 0 = not there yet
};

// Long and endless replies, piece by piece: the next one is made in a worker while the last one has
// been sent, so that no more than one is ever held; a stream of events waits for the store between
// them, is kept alive by comments, and ends in order when the server does. Made by an exchange for
// one reply; used in the io thread.
class PieceWriter {
 public:
  // All of it outlives the writer.
  struct Options {
    SessionHost* host;
    ExchangeOwner* owner;
    HttpConnection* connection;
    PieceSource* source;
    bool chunked;               // else the end of the body is that of the connection
    const std::string* caller;  // on whose behalf workers make the pieces
  };
  explicit PieceWriter(const Options& options);
  ~PieceWriter();
  PieceWriter(const PieceWriter&) = delete;
  PieceWriter& operator=(const PieceWriter&) = delete;

  // False if the connection must be closed: the reader sees that something is missing.
  Task<bool> Run();
  // The store has changed, the server ends, or the connection is closed: what waits looks again.
  void Wake();
  bool live() const { return live_; }

 private:
  // What comes next; nothing if the connection must be closed.
  Task<std::optional<Piece>> Next();
  Task<void> WaitForMore();
  absl::Duration Silence() const;  // since something was written
  std::string Framed(const Piece& piece) const;

  const Options options_;
  const bool live_;
  IoTimer timer_;
  bool waits_ = false;
  bool silent_ = false;  // for so long that the other side should hear of us
};

// What becomes of the connection after a reply.
enum class AfterReply { kNext, kEnd, kClose };

class Exchange {
 public:
  // All of it outlives the exchange.
  struct Options {
    SessionHost* host;
    ExchangeOwner* owner;
    HttpConnection* connection;
    std::string peer;
    bool may_stay;  // else the connection was only let in to ask how the server is
  };
  // `head` is what was read last, or why that is no request.
  Exchange(Options options, StatusOr<RequestHead> head)
      : options_(std::move(options)), head_(std::move(head)) {}

  // Awaited once.
  Task<AfterReply> Run();

  // The store has changed, or the server ends.
  void Wake();
  // The other side can be read, or has left: whether the connection should be closed for that.
  bool EndsWhenReadable() const;
  // The connection is closed: what waits ends soon.
  void Abandon();

 private:
  // Each gives the reply; nothing if the connection has ended.
  Task<std::optional<HttpReply>> Answer(const RequestHead& head);
  Task<std::optional<HttpReply>> Work();
  Task<std::optional<HttpReply>> AwaitReply(std::unique_ptr<PendingReply> pending);

  Status Admit(const RequestHead& head) const;
  // Whose request it is, and its body; nothing if the connection has ended.
  Task<std::optional<Status>> Receive(const RequestHead& head);
  Task<std::optional<Status>> Authenticate();
  Task<std::optional<Status>> ReadBody(bool is_expected);
  Status ConsumeBody();
  void ReleaseBody();

  HttpReply Refusal(const Status& problem);
  Task<AfterReply> Send(HttpReply reply);
  Task<AfterReply> SendPieces(std::unique_ptr<PieceSource> source);

  const Options options_;
  StatusOr<RequestHead> head_;
  HttpRequest request_;  // of the head
  RequestClass class_;
  bool keep_alive_ = false;
  bool chunked_ = false;            // of a reply with a source
  std::optional<BodyReader> body_;  // until the reply
  Quota::Share body_share_;         // the bytes of it that were received
  std::optional<ReplyWait> wait_;
  std::optional<PieceWriter> pieces_;
};

}  // namespace shirabe::service
