// One connection: reads a request, has it answered by a worker, writes the reply, and so on until
// either side has enough. Made by the server for each connection that it accepts; lives in the io
// thread, as long as something of it is under way there, and gives itself up to workers only while
// it waits for them. Who calls is found out from the head of a request, before its body is read;
// whether the server lives is answered in the io thread, whatever the workers do.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "base/any_stream.h"
#include "base/quota.h"
#include "service/http_framing.h"
#include "service/http_session_host.h"

namespace shirabe::service {

class Session : public Connection, public std::enable_shared_from_this<Session> {
 public:
  Session(AnyStream::Socket socket, SessionHost& host, std::string peer);
  // Adds itself to the host, with this seat, and begins.
  void Start(ConnectionTable::Seat seat);
  // The store has changed: an event stream that waits looks again.
  void Wake();
  bool waits() const { return state_ == State::kWaiting; }
  // The server ends: what waits for the other side is ended, requests at work are not.
  void Drain();
  // At once, whatever is under way. Nothing is called after it.
  void Close() override;

 private:
  using Error = boost::system::error_code;
  using Standing = ConnectionTable::Standing;
  enum class State { kReading, kWorking, kSuspended, kWriting, kWaiting, kEnding, kClosed };
  // A reply that waits for the store; shared by the wait and the session, of which either may go.
  struct Suspended {
    std::unique_ptr<PendingReply> reply;
    std::atomic<bool> gone = false;
  };

  // http_session.cc: the request.
  void ReadHead();
  void OnHead();  // with what has come of it
  void TakeHead(RequestHead head);
  Status Admit(const RequestHead& head);
  void Prove();      // whose token it is
  void AwaitBody();  // and say that it may come
  void OnBody();
  Status TakeBody();  // what has come of it
  void ReadOn(void (Session::*then)());
  void OnReadError(Error error);
  void Refuse(const Status& problem);
  void Work();

  // http_session_reply.cc: the reply, and the end.
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
  void End();     // a last word of TLS, then Linger
  void Linger();  // reads on a little, so that the reply is not lost in a reset
  void SkipRest(size_t skipped);

  // http_session_calls.h
  template <class Then>
  auto Bind(Then then);
  template <class Then>
  void Write(Then then);  // out_
  template <class Call, class Then>
  bool RunIn(Workers* workers, Call call, Then then);
  void Expire(absl::Duration after);
  void SetStanding(Standing standing) { host_.table->SetStanding(this, standing); }

  AnyStream stream_;
  SessionHost& host_;
  const std::string peer_;
  State state_ = State::kReading;
  ConnectionTable::Seat seat_ = ConnectionTable::Seat::kTable;
  bool known_ = false;  // has shown a token that we know
  beast::flat_buffer buffer_;
  bool begun_ = false;              // a request has begun to come in
  std::optional<BodyReader> body_;  // from the end of a head to the reply
  HttpRequest request_;
  Reception reception_;
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

}  // namespace shirabe::service
