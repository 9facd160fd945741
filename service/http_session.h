// One connection: reads a request, has it answered by a worker, writes the reply, and so on until
// either side has enough. Made by the server for each connection that it accepts; lives in the io
// thread, as long as something of it is under way there, and gives itself up to workers only while
// it waits for them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/any_stream.h"
#include "service/http_server.h"
#include "service/http_workers.h"

namespace shirabe::service {

class Session;
using SessionPtr = std::shared_ptr<Session>;  // shared: each operation under way keeps it alive

// What the connections of a server have in common. Of the io thread, but for what is thread-safe.
struct SessionHost {
  HttpLimits limits;
  asio::io_context* io = nullptr;
  asio::ssl::context* tls = nullptr;  // null = without
  Router* router = nullptr;
  Workers* quick = nullptr;
  Workers* slow = nullptr;
  Metrics* metrics = nullptr;  // may be null
  Clock* clock = nullptr;
  std::set<SessionPtr> sessions = {};  // all that are open
  int64_t wakes = 0;                   // how often the store has changed
  int streams = 0;                     // event streams open
  size_t body_bytes = 0;               // of the bodies of requests under way
  bool draining = false;
  std::function<void()> on_last_gone = {};

  void Note() const;  // how many there are, in the metrics
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(AnyStream::Socket socket, SessionHost& host, std::string peer);
  // Adds itself to the host, and begins.
  void Start();
  // The store has changed: an event stream that waits looks again.
  void Wake();
  bool waits() const { return state_ == State::kWaiting; }
  // The server ends: what waits for the other side is ended, requests at work are not.
  void Drain();
  // At once, whatever is under way. Nothing is called after it.
  void Close();

 private:
  using Error = boost::system::error_code;
  using Parser = beast::http::request_parser<beast::http::string_body>;
  enum class State { kReading, kWorking, kWriting, kWaiting, kEnding, kClosed };

  void ReadHeader();
  void OnHeader(Error error);
  void TakeHead();
  Status CheckBody();
  void RefuseWith(const Status& problem);
  void Continue();
  void ReadBody();
  void OnBody(Error error);
  void Work();
  void Refuse(Error error);  // a request that cannot be read

  void Send(HttpReply reply);
  void OnSent(Error error);
  void NextPiece();
  void OnPiece(StatusOr<Piece> piece);
  void SendPiece(const Piece& piece);
  void WaitForMore();
  void WatchForEnd();
  void OnTimer();
  void EndReply();

  void End();     // a last word of TLS, then Linger
  void Linger();  // reads on a little, so that the reply is not lost in a reset
  void SkipRest(size_t skipped);
  // Calls `then` in the io thread, with the error, unless the connection is closed by then.
  template <class Then>
  auto Bind(Then then);
  template <class Then>
  void Write(Then then);  // out_
  void Expire(absl::Duration after);

  AnyStream stream_;
  SessionHost& host_;
  const std::string peer_;
  State state_ = State::kReading;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  HttpRequest request_;
  HttpReply reply_;
  std::string out_;        // what is being written
  size_t body_bytes_ = 0;  // counted among host_.body_bytes
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
