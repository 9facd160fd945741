// Where an HTTP/1.1 request begins and ends, by RFC 9112 and strictly: what may be read in two ways
// is refused, since a proxy between us and the caller may read it the other way, and what we took
// for a body would be a request there (or the reverse). After a refusal nothing more is read from
// the connection. Used by http_session.cc and http_exchange.cc, which have the bytes, and the
// tests. Pure, without I/O; an object is used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "service/http/http_message.h"

namespace shirabe::service {

struct FramingLimits {
  size_t header_bytes = 16 << 10;  // of the request line and the fields; beyond: 431, or 414
  size_t body_bytes = 4 << 20;     // beyond: 413
};

// Request line and fields.
struct RequestHead {
  HttpRequest request;  // without its body; Host says what an absolute target says
  size_t bytes = 0;     // that it took, with the empty line
  bool http_1_1 = true;
  bool keep_alive = true;  // what the caller wants
  bool expects_continue = false;
  bool chunked = false;
  uint64_t length = 0;  // of a body that is not chunked

  bool has_body() const { return chunked || length > 0; }
};

// Reads the head at the beginning of `data`; nothing yet if more must come. An error has the status
// of HTTP that fits (400, 413, 414, 417, 431, 501, 505), and comes as soon as the bytes that are
// there prove it.
StatusOr<std::optional<RequestHead>> ParseHead(std::string_view data, const FramingLimits& limits);

// Takes the body that a head announces apart from what follows it.
class BodyReader {
 public:
  BodyReader(const RequestHead& head, const FramingLimits& limits);

  // Takes from the beginning of `data` what belongs to the body, and says how many bytes that was.
  // An error, 400 or 413, if it is not framed as it should be; then nothing more can be read.
  StatusOr<size_t> Consume(std::string_view data);
  bool done() const { return state_ == State::kDone; }
  const std::string& body() const { return body_; }
  std::string Release() { return std::move(body_); }

 private:
  // Data of known length; the line before a chunk; a chunk; the line end after it; a trailer.
  enum class State { kLength, kSize, kChunk, kChunkEnd, kTrailer, kDone };

  Status ParseChunkLine();  // line_, without its end
  Status ParseChunkSize();

  const FramingLimits limits_;
  State state_;
  uint64_t left_ = 0;  // of the body, or of the chunk
  std::string line_;   // read so far
  size_t trailer_bytes_ = 0;
  std::string body_;
};

}  // namespace shirabe::service
