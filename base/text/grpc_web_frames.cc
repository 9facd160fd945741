#include "base/text/grpc_web_frames.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shirabe {
namespace {

constexpr char kMessage = 0;
constexpr char kEnd = static_cast<char>(0x80);
constexpr size_t kHead = 5;

std::string Frame(char kind, const std::string& content) {
  std::string frame(1, kind);
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>((content.size() >> shift) & 0xff));
  }
  return frame + content;
}

// Everything but printable ASCII, and the escape itself.
std::string PercentEncoded(const std::string& text) {
  std::string encoded;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded.push_back(c);
    } else {
      absl::StrAppend(&encoded, "%", absl::Hex(static_cast<uint8_t>(c), absl::kZeroPad2));
    }
  }
  return encoded;
}

std::string PercentDecoded(const std::string& text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        absl::ascii_isxdigit(text[i + 1]) && absl::ascii_isxdigit(text[i + 2]);
    decoded += escape ? absl::HexStringToBytes(text.substr(i + 1, 2)) : text.substr(i, 1);
    if (escape) i += 2;
  }
  return decoded;
}

// "grpc-status:5\r\ngrpc-message:no such trial\r\n"; without a status it is unknown.
Status ParseEnd(const std::string& text) {
  int code = static_cast<int>(absl::StatusCode::kUnknown);
  std::string message;
  for (const auto line : absl::StrSplit(text, "\r\n", absl::SkipEmpty())) {
    const std::pair<std::string, std::string> field = absl::StrSplit(line, absl::MaxSplits(':', 1));
    const std::string value(absl::StripAsciiWhitespace(field.second));
    if (absl::EqualsIgnoreCase(field.first, "grpc-status")) (void)absl::SimpleAtoi(value, &code);
    if (absl::EqualsIgnoreCase(field.first, "grpc-message")) message = PercentDecoded(value);
  }
  return {static_cast<absl::StatusCode>(code), message};
}

}  // namespace

std::string MessageFrame(const std::string& message) { return Frame(kMessage, message); }

std::string EndFrame(const Status& status) {
  return Frame(kEnd, absl::StrCat("grpc-status:", static_cast<int>(status.code()),
                                  "\r\ngrpc-message:", PercentEncoded(Message(status)), "\r\n"));
}

StatusOr<GrpcWebBody> ParseFrames(const std::string& body) {
  GrpcWebBody parsed;
  for (size_t at = 0; at < body.size();) {
    uint64_t length = 0;
    if (body.size() - at < kHead) return absl::InvalidArgumentError("a frame is cut off");
    for (size_t i = 1; i < kHead; ++i) length = length << 8 | static_cast<uint8_t>(body[at + i]);
    if (body.size() - at - kHead < length) return absl::InvalidArgumentError("a frame is cut off");
    const char kind = body[at];
    if (parsed.complete || (kind != kMessage && kind != kEnd)) {
      return absl::InvalidArgumentError("this is not a frame of gRPC-Web");
    }
    std::string content = body.substr(at + kHead, length);
    at += kHead + length;
    if (kind == kMessage) {
      parsed.messages.push_back(std::move(content));
    } else {
      parsed.end = ParseEnd(content);
      parsed.complete = true;
    }
  }
  return parsed;
}

}  // namespace shirabe
