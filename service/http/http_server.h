// The HTTP endpoint of `shirabe serve`: HTTP/1.1 with or without TLS, JSON and Server-Sent Events,
// as the table in route_table.h says. One thread reads and writes all connections; handlers, which
// wait for the store, run in workers. Started by the server after its store and controller;
// everything in the options outlives it.
//
// No client can hold it up: header, body, reply and idle time of a connection are limited, as are
// their sizes, the number of connections in all and from one address, what one caller has the
// server keep and do at the same time, and how often one asks. Nothing is read of a body before its
// sender is known. /livez and /readyz are answered by the thread of the connections.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "service/common/connection_table.h"
#include "service/http/http_router.h"

namespace shirabe::service {

struct HttpOptions {
  std::string address = "127.0.0.1:0";  // HOST:PORT; 0 = any free one
  // Of the context, `client`, `tokens` and `clock` must be there; hub and metrics are made where
  // they are not, and `shutdown_wait` is set.
  HttpContext context = {};
  HttpLimits limits = {};
  const TlsFiles* tls = nullptr;  // until Start returns; null, or without a certificate: plaintext
};

class HttpServer {
 public:
  // Listens when it returns. kInvalidArgument, naming the option, for what is no address and for
  // files that are no certificate or key; kUnavailable if the port is taken; kPermissionDenied.
  static StatusOr<std::unique_ptr<HttpServer>> Start(HttpOptions options);
  // Takes no more connections, ends event streams and what waits, lets requests at work finish,
  // and closes all that is left after limits.drain.
  virtual ~HttpServer() = default;

  // HOST:PORT, with the port that it listens to.
  virtual std::string address() const = 0;
  virtual int port() const = 0;
};

}  // namespace shirabe::service
