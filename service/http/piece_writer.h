// Long and endless replies, piece by piece: the next one is made in a worker while the last one has
// been sent, so that no more than one is ever held; a stream of events waits for the store between
// them, is kept alive by comments, and ends in order when the server does. Made by an exchange
// (http_exchange.h) for one reply; used in the io thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "service/http/http_connection.h"
#include "service/http/http_message.h"
#include "service/http/http_task.h"

namespace shirabe::service {

class ExchangeOwner;
struct SessionHost;

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

}  // namespace shirabe::service
