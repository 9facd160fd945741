// Every request that this process makes over HTTP, but gRPC's own, goes out here: calls of a
// Kubernetes API server, scrapes of Prometheus metrics. libcurl does the work. What holds for all:
//   - no redirect is followed, no proxy is used, and no file of the user's (netrc, cookies) is
//   read:
//     a request goes where it was addressed to, or nowhere
//   - a request is sent at most once; whether to send it again is for the caller, who is told how
//     far it came
//   - TLS is 1.2 or later, and certificates are verified unless the caller says otherwise
//   - time, header and body have limits
//
// Ordinary calls share connections, which are kept open for a minute, and one HTTP/2 connection
// where the server offers that (ALPN). A call whose body is streamed, or whose address is checked,
// has a connection of its own, with HTTP/1.1: libcurl 7.88 stops all of an HTTP/2 connection while
// the reader of one stream is behind.
//
// Threads: thread-safe. A call blocks the thread that makes it and ends at once when its stop is
// requested. Streamed bodies are told, and calls with a connection of their own are made, in the
// thread of the caller; the others by one thread of the client, which its first such call starts.
#pragma once

#include <memory>
#include <stop_token>

#include "base/status.h"
#include "net/http_call.h"

namespace shirabe::net {

class HttpClient {
 public:
  // kUnimplemented, naming the package, if there is no libcurl. Connects to nothing.
  static StatusOr<std::unique_ptr<HttpClient>> Create();
  // No call is under way.
  virtual ~HttpClient() = default;

  // With a sink, the body of an answer 200 is told to it as it comes, and nothing of it is kept.
  // The sink may make calls of this client.
  virtual HttpExchange Do(const HttpCall& call, const BodyCallback* sink, std::stop_token stop) = 0;
};

}  // namespace shirabe::net
