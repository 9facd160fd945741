// A call over HTTP and what comes of it, as net/http_client.h makes it: data, and a few functions
// of them. Any thread.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace shirabe::net {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";  // path and query, sent as it is
  std::string content_type = {};
  std::string body = {};
  HttpHeaders headers = {};   // of two with one name the later one counts
  bool secret_query = false;  // no error repeats it
};

struct HttpResponse {
  int status = 0;
  std::string reason;   // in the server's words; "" over HTTP/2
  HttpHeaders headers;  // names in lower case
  std::string body;

  std::string Header(std::string_view name) const;  // "" if there is none
};

// PEM texts, not files. kInvalidArgument comes from CheckTls, before anything is sent.
struct TlsOptions {
  std::string ca;           // "" = the system's authorities
  std::string certificate;  // of this client; "" = none
  std::string key;
  std::string server_name;  // that the server's certificate must have; "" = the host's
  bool insecure = false;    // believe any certificate
};

struct HttpLimits {
  absl::Duration connect = absl::Seconds(10);         // name, connection and TLS
  absl::Duration answer = absl::Seconds(30);          // to all of it; if it is streamed, its header
  absl::Duration silence = absl::InfiniteDuration();  // between pieces of a streamed body
  size_t body_bytes = 256 << 20;                      // that are kept; headers have 64 KiB
};

struct HttpCall {
  HttpRequest request;
  std::string origin;  // http://HOST:PORT or https://HOST:PORT
  TlsOptions tls = {};
  HttpLimits limits = {};
  // Asked, after the name was resolved, for each address before it is connected to.
  std::function<bool(const sockaddr&)> may_connect = {};
  // Asked once the connection stands and nothing was sent: its error is the call's.
  std::function<Status()> before_send = {};
};

// How far an exchange came: what may be sent again depends on it.
enum class ExchangeStage {
  kNotSent,    // nothing of it reached the server
  kSent,       // it may have been received and done, and no byte came back
  kAnswering,  // the answer broke off
  kAnswered,
};

// The status is OK once the server has answered, whatever it said. Otherwise
//   kUnavailable         not reached, or the connection broke    kDeadlineExceeded  a limit of time
//   kFailedPrecondition  the server's certificate is not trusted kResourceExhausted a limit of size
//   kPermissionDenied    `may_connect` refused every address     kCancelled         stopped
//   kInvalidArgument     the call cannot be made: a header that is not one, a key that is not one
struct HttpExchange {
  Status status;
  ExchangeStage stage = ExchangeStage::kNotSent;
  HttpResponse answer;
};

// A piece of a body; false ends the exchange in order.
using BodyCallback = std::function<bool(std::string_view)>;

// kInvalidArgument, naming `ca`, `certificate` or `key`, for what is not one, or not a pair. The
// text itself is never repeated: a key is a secret, and so may be what stands in its place.
Status CheckTls(const TlsOptions& tls);

// Whether it is an address of this machine alone (127.0.0.0/8, ::1).
bool IsLoopback(const sockaddr& address);

}  // namespace shirabe::net
