// One connection of the HTTP server, as one coroutine: reads the head of a request, has it answered
// (http_exchange.h), and so on until either side has enough. Made by the server for each connection
// that it accepts; lives in the io thread until its coroutine has ended.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "service/common/connection_table.h"
#include "service/http/any_stream.h"
#include "service/http/http_connection.h"
#include "service/http/http_exchange.h"
#include "service/http/session_host.h"

namespace shirabe::service {

class Session : public TrackedConnection,
                public ExchangeOwner,
                public std::enable_shared_from_this<Session> {
 public:
  Session(AnyStream::Socket socket, SessionHost& host, std::string peer);
  // Adds itself to the host, in this slot, and begins.
  void Start(ConnectionTable::ConnectionSlot slot);
  // The store has changed: an event stream that waits looks again.
  void Wake();
  // The server ends: what waits for the other side is ended, requests at work are not.
  void Drain();
  // At once, whatever is under way; the coroutine ends soon.
  void Close() override;

  void SetKnown() override { known_ = true; }
  void BeginWork() override;
  void WatchForEnd() override;

 private:
  using ConnectionState = ConnectionTable::ConnectionState;

  Task<void> Run();
  void AwaitRequest();
  bool BeginExchange();  // false where more of the head must come
  void OnReadable();

  HttpConnection connection_;
  SessionHost& host_;
  const std::string peer_;
  bool reserved_ = false;               // there only to ask how the server is
  bool known_ = false;                  // has shown a token that we know
  bool idle_ = true;                    // nothing of a request has come in
  bool watched_ = false;                // for the other side's end
  std::unique_ptr<Exchange> exchange_;  // from the end of a head to the end of the reply
};

}  // namespace shirabe::service
