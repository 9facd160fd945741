// Any bytes of a connection: where requests begin and end must not depend on how the bytes arrive.
// The first byte says in pieces of what size they do.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "service/http/http_framing.h"

namespace shirabe::service {
namespace {

constexpr FramingLimits kLimits = {.header_bytes = 1 << 10, .body_bytes = 1 << 12};

// What is read from a connection, as a caller of ours reads it; ends with a refusal, or with what
// is not complete.
struct Seen {
  std::vector<HttpRequest> requests;
  std::vector<bool> kept;
  Status refusal;
};

class FramedStream {
 public:
  void Consume(std::string_view bytes) {
    buffer_ += bytes;
    while (seen_.refusal.ok() && TakeOne()) {
    }
  }
  const Seen& seen() const { return seen_; }

 private:
  // Whether there may be more in the buffer.
  bool TakeOne() {
    if (!head_) {
      auto head = ParseHead(buffer_, kLimits);
      if (!head.ok()) return Refuse(head.status());
      if (!*head) return false;
      CHECK((*head)->bytes > 0 && (*head)->bytes <= buffer_.size());
      CHECK(!(*head)->chunked || (*head)->length == 0);
      head_ = *std::move(*head);
      buffer_.erase(0, head_->bytes);
      body_.emplace(*head_, kLimits);
    }
    if (!body_->done()) {
      const auto taken = body_->Consume(buffer_);
      if (!taken.ok()) return Refuse(taken.status());
      CHECK(*taken <= buffer_.size());
      CHECK(body_->done() || *taken == buffer_.size());
      CHECK(body_->body().size() <= kLimits.body_bytes);
      buffer_.erase(0, *taken);
    }
    if (!body_->done()) return false;
    HttpRequest request = std::move(head_->request);
    request.body = body_->Release();
    CHECK(head_->chunked || request.body.size() == head_->length);
    seen_.requests.push_back(std::move(request));
    seen_.kept.push_back(head_->keep_alive);
    head_.reset();
    return !buffer_.empty();
  }
  bool Refuse(const Status& status) {
    CHECK(!status.message().empty());
    seen_.refusal = status;
    return false;
  }

  std::string buffer_;
  std::optional<RequestHead> head_;
  std::optional<BodyReader> body_;
  Seen seen_;
};

void Check(std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t piece = 1 + static_cast<uint8_t>(bytes[0]) % 64;
  bytes.remove_prefix(1);
  FramedStream whole, pieces;
  whole.Consume(bytes);
  for (size_t at = 0; at < bytes.size(); at += piece) pieces.Consume(bytes.substr(at, piece));
  const Seen &one = whole.seen(), &other = pieces.seen();
  CHECK(one.requests.size() == other.requests.size());
  CHECK(one.kept == other.kept);
  CHECK(one.refusal.code() == other.refusal.code());
  for (size_t i = 0; i < one.requests.size(); ++i) {
    const HttpRequest &a = one.requests[i], &b = other.requests[i];
    CHECK(a.method == b.method && a.target == b.target && a.headers == b.headers &&
          a.body == b.body);
    for (const auto& [name, value] : a.headers) {
      CHECK(name.find_first_of(" \t\r\n:") == std::string::npos);
      CHECK(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace shirabe::service

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shirabe::service::Check(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
