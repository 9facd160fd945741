// What the connections of one HTTP server have in common. Made by the server (http_server.cc),
// which outlives them; used in its io thread, but for what is thread-safe. And what a connection's
// session is for the request that is under way on it (ExchangeOwner).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/rate_limits.h"
#include "service/http/http_message.h"

namespace boost::asio::ssl {
class context;
}  // namespace boost::asio::ssl

namespace shirabe::service {

class ConnectionTable;
class LongPollQueue;
class Metrics;
class Router;
class Session;
class Workers;
struct Quotas;

using SessionPtr = std::shared_ptr<Session>;  // shared: with its coroutine

struct SessionHost {
  HttpLimits limits;
  boost::asio::ssl::context* tls = nullptr;  // null = without
  Router* router = nullptr;
  Workers* quick = nullptr;
  Workers* slow = nullptr;
  LongPollQueue* long_polls = nullptr;
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
  // What a connection is told that there is no room for; counted, and as such only.
  HttpReply RefuseConnection() const;
};

// What an exchange (http_exchange.h) asks of the session on whose connection it is.
class ExchangeOwner {
 public:
  // The caller has shown a token that we know.
  virtual void SetKnown() = 0;
  // A request is at work: if its caller is known, its connection is not closed to make room.
  virtual void BeginWork() = 0;
  // From now on it is noticed when the other side leaves.
  virtual void WatchForEnd() = 0;

 protected:
  ~ExchangeOwner() = default;
};

}  // namespace shirabe::service
