// What the connections of one HTTP server have in common. Made by the server (http_server.cc),
// which outlives them; used in its io thread, but for what is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "base/any_stream.h"
#include "base/clock.h"
#include "service/http_connections.h"
#include "service/http_server.h"
#include "service/http_workers.h"
#include "service/quotas.h"
#include "service/waits.h"

namespace shirabe::service {

class Session;
using SessionPtr = std::shared_ptr<Session>;  // shared: each operation under way keeps it alive

struct SessionHost {
  HttpLimits limits;
  asio::io_context* io = nullptr;
  asio::ssl::context* tls = nullptr;  // null = without
  Router* router = nullptr;
  Workers* quick = nullptr;
  Workers* slow = nullptr;
  Waits* waits = nullptr;
  Quotas* quotas = nullptr;
  ConnectionTable* table = nullptr;
  Metrics* metrics = nullptr;  // may be null
  Clock* clock = nullptr;
  std::set<SessionPtr> sessions = {};  // all that are open
  int64_t wakes = 0;                   // how often the store has changed
  int streams = 0;                     // event streams open
  bool draining = false;
  std::function<void()> on_last_gone = {};

  void Note() const;  // how many there are, in the metrics
};

}  // namespace shirabe::service
