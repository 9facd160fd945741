#include "service/http/etag.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shirabe::service {
namespace {

constexpr char kJsonType[] = "application/json";
constexpr char kHeader[] = "if-none-match";

// W/"a" and "a" are the same here: the comparison is the weak one (RFC 9110, 8.8.3.2).
std::string_view Opaque(std::string_view tag) {
  if (tag.starts_with("W/")) tag.remove_prefix(2);
  return tag;
}

// FNV-1a with words of eight bytes, finished by a multiplication: not against an adversary, who
// would only keep old news from themselves.
uint64_t HashOf(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::copy_n(bytes.data(), sizeof word, reinterpret_cast<char*>(&word));
    mix(word);
    bytes.remove_prefix(sizeof word);
  }
  for (const char c : bytes) mix(static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

std::string EtagOf(const std::string& version) { return absl::StrCat("\"", version, "\""); }

std::string EtagOfBody(const std::string& body) {
  return EtagOf(absl::StrCat(absl::Hex(HashOf(body), absl::kZeroPad16), "-", body.size()));
}

bool IsKnown(const HttpRequest& request, const std::string& etag) {
  for (const auto part : absl::StrSplit(request.Header(kHeader), ',')) {
    const auto tag = absl::StripAsciiWhitespace(part);
    if (tag == "*" || Opaque({tag.data(), tag.size()}) == etag) return true;
  }
  return false;
}

std::string KnownVersion(const HttpRequest& request) {
  const std::string& value = request.Header(kHeader);
  const size_t open = value.find('"');
  const size_t close = open == std::string::npos ? open : value.find('"', open + 1);
  return close == std::string::npos ? "" : value.substr(open + 1, close - open - 1);
}

HttpReply NotModified(const std::string& etag) {
  HttpReply reply{.status = 304, .type = ""};
  reply.headers.emplace_back("ETag", etag);
  return reply;
}

HttpReply Conditional(const HttpRequest& request, HttpReply reply) {
  const bool json = reply.status == 200 && reply.type == kJsonType && reply.source == nullptr &&
                    reply.pending == nullptr;
  const bool tagged = std::any_of(reply.headers.begin(), reply.headers.end(),
                                  [](const auto& header) { return header.first == "ETag"; });
  if (!json || tagged) return reply;
  const std::string etag = EtagOfBody(reply.body);
  if (IsKnown(request, etag)) return NotModified(etag);
  reply.headers.emplace_back("ETag", etag);
  return reply;
}

}  // namespace shirabe::service
