// What goes through the HTTP server, free of sockets: requests as they were read, replies as they
// are to be written, errors among them; and the limits of the server (HttpLimits). The router
// (route_table.h) makes one of the other; the server (http_server.h) and the tests are its callers.
// Plain values; a PieceSource is used by one thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "experiment/spec/parse_spec.h"
#include "service/common/long_polls.h"

namespace shirabe::service {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;   // GET, as sent
  std::string target;   // path and query, as sent
  HttpHeaders headers;  // names in lower case, in the order of the request
  std::string body = {};
  std::string peer = {};  // AddressGroup of the address it came from

  // The value of a header; "" if it is not there. Of several, the first.
  const std::string& Header(const std::string& lower_case_name) const;
};

// A part of a reply that is made as it goes.
struct Piece {
  std::string text = {};
  bool end = false;
};

// The body of a long or endless reply. It owns all that it needs.
class PieceSource {
 public:
  virtual ~PieceSource() = default;
  // The next part, at most some 64 KiB; an empty one if there is none now: it is asked again once
  // the store has changed or Poll has passed. An error ends the reply in the middle, as is seen.
  virtual StatusOr<Piece> Next() = 0;
  // A stream of events: kept alive by comments, ended when the server stops.
  virtual bool live() const { return false; }
  virtual bool slow() const { return false; }  // Next may wait for another machine
  virtual absl::Duration Poll() const { return absl::InfiniteDuration(); }
};

struct HttpReply;
struct Route;
// A reply that is not there yet: its request waits for something in the store, without a thread
// (service/common/long_polls.h). It owns all that it needs; used by one thread at a time.
class PendingReply {
 public:
  explicit PendingReply(LongPollTerms terms) : terms_(std::move(terms)) {}
  virtual ~PendingReply() = default;
  // The reply, or the error to answer with; nothing if it waits on, which it must not with `last`.
  virtual std::optional<StatusOr<HttpReply>> TryAnswer(bool last) = 0;

  const LongPollTerms& terms() const { return terms_; }
  struct Origin {                  // of the request that waits, for the router's metrics
    const Route* route = nullptr;  // null: a call of gRPC
    absl::Duration began = absl::ZeroDuration();
  };
  void set_origin(const Origin& origin) { origin_ = origin; }
  const Origin& origin() const { return origin_; }

 private:
  const LongPollTerms terms_;
  Origin origin_;
};

struct HttpReply {
  int status = 200;
  std::string type = "application/json";  // "" = there is no body
  std::string body = {};
  HttpHeaders headers = {};
  std::unique_ptr<PieceSource> source = nullptr;    // instead of `body`
  std::optional<int64_t> length = {};               // of all that `source` will give, where known
  std::unique_ptr<PendingReply> pending = nullptr;  // instead of all of it
};

// The path and query of a target. kInvalidArgument if an escape or the encoding is wrong.
struct HttpTarget {
  std::vector<std::string> segments;  // decoded, without the empty one before the first '/'
  std::vector<std::pair<std::string, std::string>> query;
};
StatusOr<HttpTarget> ParseTarget(const std::string& target);

// How a connection goes on after a reply.
struct ReplyFrame {
  bool keep_alive = true;
  bool chunked = false;   // a source of unknown length; else its end is that of the connection
  std::string date = {};  // of the Date header
};
// Everything before the body, with the empty line. Values that would break a header are blanked.
std::string HeadOf(const HttpReply& reply, const ReplyFrame& frame);
// The standard's word for a status.
const char* ReasonPhrase(int status);

// Errors as HTTP says them, by pure functions: a status from the code, by one table, and a body
//   {"code": "NOT_FOUND", "message": "…", "details": [{"field": "…", "reason": "…"}]}

// What is wrong with one part of a request; line and column where it was read from a text.
struct ErrorDetail {
  std::string field;  // spec.parameters[1].name, pageSize, If-Match
  std::string reason;
  int line = 0;
  int column = 0;
};

// kInvalidArgument about one parameter, header or field.
Status BadField(const std::string& field, const std::string& reason);
// kInvalidArgument with every error among the findings as a detail; there is one at least.
Status BadSpec(const std::string& what, const std::vector<experiment::Finding>& findings);
// A status that only HTTP knows (405, 412, 413, 415, 429) instead of that of its code.
Status WithHttpStatus(const Status& status, int http_status);

// kResourceExhausted of a limit that the caller itself has reached: 429.
Status TooMany(const Status& status);

int HttpStatusOf(const Status& status);
// INVALID_ARGUMENT, NOT_FOUND, …
std::string CodeWord(absl::StatusCode code);
// With WWW-Authenticate on 401, and Retry-After where trying again helps.
HttpReply ErrorReply(const Status& status);

// Of a server, beyond which it refuses or closes.
struct HttpLimits {
  int connections = 12'000;  // beyond them: an idle one goes, or 503
  // Of one address (of IPv6: of one network of 64 bits); 0 = as many. A proxy is one address.
  int connections_per_address = 0;
  size_t header_bytes = 16 << 10;
  size_t body_bytes = 4 << 20;  // beyond: 413
  absl::Duration handshake = absl::Seconds(10);
  absl::Duration header = absl::Seconds(15);     // to read a header; for the first to begin
  absl::Duration idle = absl::Seconds(60);       // between the requests of a caller who is known
  absl::Duration body = absl::Seconds(30);       // to read its body
  absl::Duration write = absl::Seconds(30);      // of a reply, or of a part of a long one
  absl::Duration heartbeat = absl::Seconds(15);  // of event streams
  absl::Duration drain = absl::Seconds(10);      // for requests at work, when the server ends
  int workers = 8;                               // for what the store answers at once
  int slow_workers = 64;                         // for what may wait
};

}  // namespace shirabe::service
