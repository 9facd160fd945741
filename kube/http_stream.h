// One connection to an API server, over which one exchange at a time goes: kube/transport.h opens,
// keeps and reuses them. Every call blocks its thread, at most as long as it is told, and ends at
// once when `stop` is asked for. One thread at a time.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "kube/cluster_config.h"
#include "kube/resource_path.h"

namespace boost::asio::ssl {
class context;
}

namespace shirabe::kube {

struct HttpRequest {
  std::string method;
  std::string target;  // path and query
  std::string content_type = {};
  std::string body = {};
  std::string authorization = {};                                 // the header's value, "" = none
  std::vector<std::pair<std::string, std::string>> headers = {};  // more of them
};

struct HttpResponse {
  int status = 0;
  std::string body;
  std::optional<absl::Duration> retry_after;
};

// How far an exchange came: what may be sent again depends on it.
enum class ExchangeStage {
  kNotSent,    // nothing of it reached the server
  kSent,       // it may have been received and done, and no byte came back
  kAnswering,  // the answer broke off
  kAnswered,
};

struct Exchange {
  Status status;  // OK once answered, whatever the answer says
  ExchangeStage stage = ExchangeStage::kNotSent;
  HttpResponse answer;
};

// A piece of a body; false ends the exchange in order.
using BodyCallback = std::function<bool(std::string_view)>;

struct Timeouts {
  absl::Duration answer = absl::Seconds(30);          // for all of an ordinary answer, or a header
  absl::Duration silence = absl::InfiniteDuration();  // between pieces of a streamed body
  size_t body_bytes = 256 << 20;                      // the most that is kept of an answer
};

class HttpStream {
 public:
  // Connected, and with TLS if `tls` is not null; it need not outlive this call. kUnavailable or
  // kDeadlineExceeded if the server cannot be reached, kFailedPrecondition if it is not the one
  // that the certificate authority vouches for, kCancelled.
  static StatusOr<std::unique_ptr<HttpStream>> Open(const Endpoint& endpoint,
                                                    boost::asio::ssl::context* tls,
                                                    absl::Duration patience, std::stop_token stop);
  virtual ~HttpStream() = default;

  // With a sink, the body of an answer 200 is told to it as it comes, and nothing of it is kept.
  virtual Exchange Do(const HttpRequest& request, const Timeouts& waits, const BodyCallback* sink,
                      std::stop_token stop) = 0;
  // Whether another exchange may be tried: the last one is over, and the server has not hung up.
  virtual bool reusable() = 0;
};

// What TLS needs to know of an API server and of us. Called by kube/transport.cc.

// For connections to the server of this configuration, as the client that the PEM texts say ("" =
// none). kInvalidArgument, naming the field, for what is no certificate or key.
StatusOr<std::unique_ptr<boost::asio::ssl::context>> MakeTls(const Config& config,
                                                             const std::string& certificate,
                                                             const std::string& key);

}  // namespace shirabe::kube
