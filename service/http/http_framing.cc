#include "service/http/http_framing.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "service/http/http_message.h"

namespace shirabe::service {
namespace {

constexpr size_t kMaxFields = 100;
constexpr size_t kMaxMethod = 32;
constexpr size_t kMaxTarget = 8 << 10;
constexpr size_t kMaxChunkLine = 256;  // a size and its extensions
constexpr size_t kMaxTrailer = 4 << 10;
constexpr size_t kMaxSizeDigits = 15;

Status Bad(const std::string& what, int status = 400) {
  return WithHttpStatus(absl::InvalidArgumentError("this is not an HTTP/1.1 request: " + what),
                        status);
}

Status TooLong(const FramingLimits& limits) {
  return WithHttpStatus(absl::InvalidArgumentError(absl::StrCat("the header has more than ",
                                                                limits.header_bytes, " bytes")),
                        431);
}

Status TooLarge(const FramingLimits& limits) {
  return WithHttpStatus(absl::InvalidArgumentError(
                            absl::StrCat("the body has more than ", limits.body_bytes, " bytes")),
                        413);
}

bool IsTokenChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

// Visible ASCII, blanks, tabs and whatever is not ASCII.
bool IsFieldChar(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The elements of a list of tokens, in lower case; empty ones are allowed and left out.
std::vector<std::string> Elements(const std::string& list) {
  std::vector<std::string> elements;
  for (const auto part : absl::StrSplit(list, ',')) {
    const std::string_view word = Trim({part.data(), part.size()});
    if (!word.empty()) elements.push_back(absl::AsciiStrToLower(std::string(word)));
  }
  return elements;
}

// A host with or without a port, as a URL has it.
bool IsAuthority(std::string_view text) {
  constexpr std::string_view kMore = "-._~!$&'()*+;=:[]%";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           kMore.find(c) != std::string_view::npos;
  });
}

// ---- the request line --------------------------------------------------------------------------

// http://host/path: what a proxy is asked for, which every server must understand, too.
Status ParseAbsoluteTarget(RequestHead& head, std::string& authority) {
  std::string& target = head.request.target;
  const size_t begin = target.find("://") + 3;
  const size_t end = std::min(target.find_first_of("/?", begin), target.size());
  authority = target.substr(begin, end - begin);
  if (!IsAuthority(authority)) return Bad("its target has no host");
  target = target.substr(end);
  if (target.empty() || target[0] != '/') target.insert(0, "/");
  return absl::OkStatus();
}

Status ParseRequestTarget(RequestHead& head, std::string& authority) {
  const std::string& target = head.request.target;
  if (head.request.method == "CONNECT") {
    return WithHttpStatus(absl::UnimplementedError("this server is not a proxy: no CONNECT"), 501);
  }
  if (target[0] == '/' || (target == "*" && head.request.method == "OPTIONS")) {
    return absl::OkStatus();
  }
  if (absl::StartsWithIgnoreCase(target, "http://") ||
      absl::StartsWithIgnoreCase(target, "https://")) {
    return ParseAbsoluteTarget(head, authority);
  }
  return Bad("its target must begin with /");
}

Status ParseRequestLine(std::string_view line, RequestHead& head, std::string& authority) {
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) {
    return Bad("its first line must be METHOD TARGET HTTP/1.1");
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (!IsToken(method) || method.size() > kMaxMethod) return Bad("its method is none");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const bool other = version.size() == 8 && version.substr(0, 5) == "HTTP/";
    return Bad("its version must be HTTP/1.1", other ? 505 : 400);
  }
  const bool visible = std::all_of(target.begin(), target.end(),
                                   [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
  if (target.empty() || !visible) return Bad("its target must be percent-encoded");
  if (target.size() > kMaxTarget) {
    return WithHttpStatus(absl::InvalidArgumentError(
                              absl::StrCat("the target has more than ", kMaxTarget, " characters")),
                          414);
  }
  head.request.method = std::string(method);
  head.request.target = std::string(target);
  head.http_1_1 = version == "HTTP/1.1";
  head.keep_alive = head.http_1_1;
  return ParseRequestTarget(head, authority);
}

// ---- the fields --------------------------------------------------------------------------------

// "Name: value"; the name in lower case.
StatusOr<std::pair<std::string, std::string>> ParseField(std::string_view line) {
  if (line[0] == ' ' || line[0] == '\t') return Bad("a header goes on in a second line");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return Bad("a header has no colon");
  const std::string_view name = line.substr(0, colon);
  if (!IsToken(name)) return Bad("the name of a header has a character that none may have");
  const std::string_view value = Trim(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), IsFieldChar)) {
    return Bad(absl::StrCat("the header ", std::string(name), " has a control character"));
  }
  return std::make_pair(absl::AsciiStrToLower(std::string(name)), std::string(value));
}

std::vector<std::string> ValuesOf(const HttpRequest& request, const std::string& name) {
  std::vector<std::string> values;
  for (const auto& [field, value] : request.headers) {
    if (field == name) values.push_back(value);
  }
  return values;
}

Status ParseHost(const std::string& authority, RequestHead& head) {
  const std::vector<std::string> hosts = ValuesOf(head.request, "host");
  if (hosts.size() > 1) return Bad("it has more than one Host");
  if (hosts.empty() && head.http_1_1) return Bad("it has no Host");
  if (!hosts.empty() && !IsAuthority(hosts[0])) return Bad("its Host is not a HOST:PORT");
  if (authority.empty()) return absl::OkStatus();
  for (auto& [field, value] : head.request.headers) {
    if (field == "host") value = authority;
  }
  if (hosts.empty()) head.request.headers.emplace_back("host", authority);
  return absl::OkStatus();
}

Status ParseContentLength(const std::vector<std::string>& lengths, const FramingLimits& limits,
                          RequestHead& head) {
  if (lengths.size() > 1) return Bad("it has more than one Content-Length");
  const std::string& text = lengths[0];
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits) return Bad("its Content-Length is not a number");
  if (!absl::SimpleAtoi(text, &head.length) || head.length > limits.body_bytes) {
    return TooLarge(limits);
  }
  return absl::OkStatus();
}

Status ParseTransferEncoding(const std::vector<std::string>& fields, RequestHead& head) {
  if (!head.http_1_1) return Bad("HTTP/1.0 has no Transfer-Encoding");
  std::vector<std::string> codings;
  for (const std::string& field : fields) {
    for (std::string& coding : Elements(field)) codings.push_back(std::move(coding));
  }
  const auto chunked = std::count(codings.begin(), codings.end(), "chunked");
  if (codings.empty() || codings.back() != "chunked" || chunked != 1) {
    return Bad("its Transfer-Encoding must be: chunked");
  }
  if (fields.size() > 1 || codings.size() > 1) {
    return WithHttpStatus(absl::UnimplementedError(absl::StrCat(
                              "the transfer coding ", codings[0],
                              " is not understood here: send Transfer-Encoding: chunked alone")),
                          501);
  }
  head.chunked = true;
  return absl::OkStatus();
}

Status ParseFraming(const FramingLimits& limits, RequestHead& head) {
  const auto lengths = ValuesOf(head.request, "content-length");
  const auto codings = ValuesOf(head.request, "transfer-encoding");
  if (!lengths.empty() && !codings.empty()) {
    return Bad("it has Content-Length and Transfer-Encoding");
  }
  if (!lengths.empty()) return ParseContentLength(lengths, limits, head);
  if (!codings.empty()) return ParseTransferEncoding(codings, head);
  return absl::OkStatus();
}

Status ParseConnectionHeader(RequestHead& head) {
  for (const std::string& field : ValuesOf(head.request, "connection")) {
    for (const std::string& word : Elements(field)) {
      if (word == "close") {
        head.keep_alive = false;
        return absl::OkStatus();
      }
      if (word == "keep-alive") head.keep_alive = true;
    }
  }
  return absl::OkStatus();
}

Status ParseExpectHeader(RequestHead& head) {
  const auto expected = ValuesOf(head.request, "expect");
  if (expected.empty()) return absl::OkStatus();
  if (expected.size() > 1 || !absl::EqualsIgnoreCase(expected[0], "100-continue")) {
    return WithHttpStatus(absl::InvalidArgumentError("only 100-continue can be expected (Expect)"),
                          417);
  }
  head.expects_continue = head.http_1_1 && head.has_body();
  return absl::OkStatus();
}

// What must not wait for the end of the head: it never comes, or takes too long.
Status CheckBegun(std::string_view data, const FramingLimits& limits) {
  if (data.size() > limits.header_bytes) {
    const size_t line = data.find("\r\n");
    if (line == std::string_view::npos) {
      return WithHttpStatus(absl::InvalidArgumentError("the first line of the request is too long"),
                            414);
    }
    return TooLong(limits);
  }
  if (!data.empty() && !IsTokenChar(data[0])) return Bad("it does not begin with a method");
  return absl::OkStatus();
}

// A line that ends as none may: RFC 9112 allows to take it for a line's end, or not.
bool HasBareEnd(std::string_view data) {
  for (size_t at = data.find('\n'); at != std::string_view::npos; at = data.find('\n', at + 1)) {
    if (at == 0 || data[at - 1] != '\r') return true;
  }
  return false;
}

Status ParseFields(std::string_view lines, RequestHead& head) {
  while (!lines.empty()) {
    const size_t end = lines.find("\r\n");
    if (head.request.headers.size() >= kMaxFields) {
      return WithHttpStatus(
          absl::InvalidArgumentError(absl::StrCat("there are more than ", kMaxFields, " headers")),
          431);
    }
    ASSIGN_OR_RETURN(auto field, ParseField(lines.substr(0, end)));
    head.request.headers.push_back(std::move(field));
    lines.remove_prefix(end + 2);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::optional<RequestHead>> ParseHead(std::string_view data, const FramingLimits& limits) {
  // One empty line before a request is forgiven: some clients end a body with it.
  const size_t skipped = data.substr(0, 2) == "\r\n" ? 2 : 0;
  if (data == "\r") return std::nullopt;
  data.remove_prefix(skipped);
  const size_t end = data.find("\r\n\r\n");
  const std::string_view text = data.substr(0, end == std::string_view::npos ? end : end + 2);
  RETURN_IF_ERROR(CheckBegun(text, limits));
  if (HasBareEnd(text)) return Bad("a line ends without a carriage return");
  const size_t line = text.find("\r\n");
  if (line == std::string_view::npos) return std::nullopt;
  RequestHead head;
  std::string authority;
  RETURN_IF_ERROR(ParseRequestLine(text.substr(0, line), head, authority));
  if (end == std::string_view::npos) return std::nullopt;
  RETURN_IF_ERROR(ParseFields(text.substr(line + 2), head));
  RETURN_IF_ERROR(ParseHost(authority, head));
  RETURN_IF_ERROR(ParseFraming(limits, head));
  RETURN_IF_ERROR(ParseConnectionHeader(head));
  RETURN_IF_ERROR(ParseExpectHeader(head));
  head.bytes = skipped + end + 4;
  return head;
}

// ---- the body ----------------------------------------------------------------------------------

BodyReader::BodyReader(const RequestHead& head, const FramingLimits& limits)
    : limits_(limits), state_(head.chunked ? State::kSize : State::kLength), left_(head.length) {
  if (!head.has_body()) state_ = State::kDone;
}

StatusOr<size_t> BodyReader::Consume(std::string_view data) {
  size_t taken = 0;
  while (taken < data.size() && !done()) {
    if (state_ == State::kLength || state_ == State::kChunk) {
      const size_t count = std::min<uint64_t>(left_, data.size() - taken);
      body_.append(data.substr(taken, count));
      taken += count;
      left_ -= count;
      if (left_ == 0) state_ = state_ == State::kLength ? State::kDone : State::kChunkEnd;
      continue;
    }
    const char c = data[taken++];
    if (c != '\n') {
      line_ += c;
      if (line_.size() > kMaxChunkLine) return Bad("a line between its chunks is too long");
      continue;
    }
    if (line_.empty() || line_.back() != '\r') return Bad("a line ends without a carriage return");
    line_.pop_back();
    RETURN_IF_ERROR(ParseChunkLine());
    line_.clear();
  }
  return taken;
}

Status BodyReader::ParseChunkLine() {
  if (state_ == State::kSize) return ParseChunkSize();
  if (state_ == State::kChunkEnd) {
    if (!line_.empty()) return Bad("a chunk is longer than its size");
    state_ = State::kSize;
    return absl::OkStatus();
  }
  // Trailers say nothing here; they must be headers all the same.
  if (line_.empty()) {
    state_ = State::kDone;
    return absl::OkStatus();
  }
  trailer_bytes_ += line_.size();
  if (trailer_bytes_ > kMaxTrailer) return Bad("its trailer is too long", 431);
  return ParseField(line_).status();
}

// 1a3;extension=value, of which extensions mean nothing here.
Status BodyReader::ParseChunkSize() {
  const size_t digits = std::min(line_.find(';'), line_.size());
  if (!std::all_of(line_.begin(), line_.end(), IsFieldChar)) {
    return Bad("a line between its chunks has a control character");
  }
  if (digits == 0 ||
      !std::all_of(line_.begin(), line_.begin() + static_cast<std::ptrdiff_t>(digits),
                   absl::ascii_isxdigit)) {
    return Bad("the size of a chunk is not a hexadecimal number");
  }
  if (digits > kMaxSizeDigits || !absl::SimpleHexAtoi(line_.substr(0, digits), &left_) ||
      left_ > limits_.body_bytes - body_.size()) {
    return TooLarge(limits_);
  }
  state_ = left_ == 0 ? State::kTrailer : State::kChunk;
  return absl::OkStatus();
}

}  // namespace shirabe::service
