// One notification on its way to an endpoint: what is sent, how it is signed, and what came of it.
// When to send, and what to do about a failure, is the caller's (experiment/pass_notify.cc).
//
// A request is POST with a JSON body and these headers:
//   Shirabe-Id         the same for each attempt to deliver one notification: a receiver that has
//                      seen it acknowledges it again and does nothing more
//   Shirabe-Timestamp  seconds since 1970, when this attempt was made
//   Shirabe-Signature  v1=HEX, the HMAC-SHA-256 under the endpoint's secret of the timestamp, a dot
//                      and the body. A receiver refuses an old timestamp, and so no one can send a
//                      request again later. Absent where the endpoint has no secret (Slack's)
// Any status 2xx acknowledges it. Its answer is not read; a redirect is not followed.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::notify {

struct Notification {
  std::string endpoint;  // its name
  std::string ns;        // of the experiment
  std::string id;
  std::string body;  // JSON
};

// OK once it was acknowledged. An error is in words for the experiment's users: what they may know
// of an endpoint. It is to be sent again, after `retry_after` at the earliest.
struct SendResult {
  Status status;
  absl::Duration retry_after;  // as the endpoint wishes; 0 = it says nothing
};

// Thread-safe.
class Sender {
 public:
  virtual ~Sender() = default;
  // Blocks, for 15 seconds at most; ends soon when its stop is requested.
  virtual SendResult Send(const Notification& notification, std::stop_token stop) = 0;
};

// Over HTTP, to what FindEndpoint (notify/endpoints.h) finds. Null where endpoints are not known: a
// process that was told of none leaves notifications to one that was.
std::unique_ptr<Sender> MakeWebhookSender(Clock* clock);

// The value of Shirabe-Signature.
std::string Signature(const std::string& secret, const std::string& timestamp,
                      const std::string& body);

// What Slack shows of such a body: one text, in which nothing is a mention or a link.
std::string SlackBody(const std::string& body);

}  // namespace shirabe::notify
