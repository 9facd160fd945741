#include "service/http/http_message.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/text/json_text.h"
#include "experiment/spec/findings.h"

namespace shirabe::service {
namespace {

constexpr size_t kMaxSegments = 32;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Control characters never belong into a name or a value of ours.
std::optional<std::string> Decode(const std::string& text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_blank) {
      c = ' ';
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::nullopt;
    out += c;
  }
  if (Printable(out) != out) return std::nullopt;  // is no UTF-8
  return out;
}

Status BadEscape(const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" in the URL is not percent-encoded as it should be: write % as %25"));
}

Status ParsePath(const std::string& path, HttpTarget& out) {
  if (path.empty() || path[0] != '/') {
    return absl::InvalidArgumentError("the path of the request must begin with /");
  }
  size_t begin = 1;
  while (begin < path.size()) {
    const size_t slash = std::min(path.find('/', begin), path.size());
    auto segment = Decode(path.substr(begin, slash - begin), false);
    if (!segment) return BadEscape(path.substr(begin, slash - begin));
    out.segments.push_back(std::move(*segment));
    if (out.segments.size() > kMaxSegments) {
      return absl::InvalidArgumentError("the path of the request has too many parts");
    }
    begin = slash + 1;
  }
  return absl::OkStatus();
}

Status ParseQuery(const std::string& query, HttpTarget& out) {
  size_t begin = 0;
  while (begin < query.size()) {
    const size_t end = std::min(query.find('&', begin), query.size());
    const std::string part = query.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    auto name = Decode(part.substr(0, equals), true);
    auto value = Decode(equals < part.size() ? part.substr(equals + 1) : "", true);
    if (!name || !value) return BadEscape(part);
    out.query.emplace_back(std::move(*name), std::move(*value));
  }
  return absl::OkStatus();
}

void AddHeader(std::string& head, const std::string& name, const std::string& value) {
  absl::StrAppend(&head, name, ": ");
  for (const char c : value) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    head += control ? ' ' : c;
  }
  head += "\r\n";
}

struct Reason {
  int status;
  const char* words;
};
constexpr Reason kReasons[] = {{200, "OK"},
                               {201, "Created"},
                               {202, "Accepted"},
                               {204, "No Content"},
                               {304, "Not Modified"},
                               {308, "Permanent Redirect"},
                               {400, "Bad Request"},
                               {401, "Unauthorized"},
                               {403, "Forbidden"},
                               {404, "Not Found"},
                               {405, "Method Not Allowed"},
                               {406, "Not Acceptable"},
                               {408, "Request Timeout"},
                               {409, "Conflict"},
                               {410, "Gone"},
                               {411, "Length Required"},
                               {412, "Precondition Failed"},
                               {413, "Content Too Large"},
                               {414, "URI Too Long"},
                               {415, "Unsupported Media Type"},
                               {417, "Expectation Failed"},
                               {429, "Too Many Requests"},
                               {431, "Request Header Fields Too Large"},
                               {499, "Client Closed Request"},
                               {500, "Internal Server Error"},
                               {501, "Not Implemented"},
                               {503, "Service Unavailable"},
                               {504, "Gateway Timeout"},
                               {505, "HTTP Version Not Supported"}};

}  // namespace

const std::string& HttpRequest::Header(const std::string& lower_case_name) const {
  static const std::string none;
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& header) {
    return header.first == lower_case_name;
  });
  return found == headers.end() ? none : found->second;
}

StatusOr<HttpTarget> ParseTarget(const std::string& target) {
  HttpTarget out;
  const size_t mark = std::min(target.find('?'), target.size());
  RETURN_IF_ERROR(ParsePath(target.substr(0, mark), out));
  if (mark < target.size()) RETURN_IF_ERROR(ParseQuery(target.substr(mark + 1), out));
  return out;
}

const char* ReasonPhrase(int status) {
  for (const Reason& reason : kReasons) {
    if (reason.status == status) return reason.words;
  }
  return "Status";
}

std::string HeadOf(const HttpReply& reply, const ReplyFrame& frame) {
  std::string head =
      absl::StrCat("HTTP/1.1 ", reply.status, " ", ReasonPhrase(reply.status), "\r\n");
  head.reserve(512);
  if (!frame.date.empty()) AddHeader(head, "Date", frame.date);
  AddHeader(head, "Server", "shirabe/" SHIRABE_VERSION);
  if (!reply.type.empty()) {
    AddHeader(head, "Content-Type", reply.type);
    AddHeader(head, "X-Content-Type-Options", "nosniff");
  }
  const bool cached =
      std::any_of(reply.headers.begin(), reply.headers.end(),
                  [](const auto& header) { return header.first == "Cache-Control"; });
  if (!cached) AddHeader(head, "Cache-Control", "no-store");
  for (const auto& [name, value] : reply.headers) AddHeader(head, name, value);
  if (frame.chunked) {
    AddHeader(head, "Transfer-Encoding", "chunked");
  } else if (reply.length) {
    AddHeader(head, "Content-Length", std::to_string(*reply.length));
  } else if (reply.source == nullptr && reply.status != 204 && reply.status != 304) {
    AddHeader(head, "Content-Length", std::to_string(reply.body.size()));
  }
  AddHeader(head, "Connection", frame.keep_alive ? "keep-alive" : "close");
  return head + "\r\n";
}

namespace {

using Json = nlohmann::ordered_json;

// Payloads of a status that only HTTP replies show.
constexpr char kDetails[] = "shirabe/details";
constexpr char kHttpStatus[] = "shirabe/http-status";
constexpr char kRetryAfterSeconds[] = "1";

struct Row {
  absl::StatusCode code;
  const char* word;
  int http;
};

constexpr Row kTable[] = {
    {absl::StatusCode::kOk, "OK", 200},
    {absl::StatusCode::kCancelled, "CANCELLED", 499},
    {absl::StatusCode::kUnknown, "UNKNOWN", 500},
    {absl::StatusCode::kInvalidArgument, "INVALID_ARGUMENT", 400},
    {absl::StatusCode::kDeadlineExceeded, "DEADLINE_EXCEEDED", 504},
    {absl::StatusCode::kNotFound, "NOT_FOUND", 404},
    {absl::StatusCode::kAlreadyExists, "ALREADY_EXISTS", 409},
    {absl::StatusCode::kPermissionDenied, "PERMISSION_DENIED", 403},
    // A full disk or a full queue: the caller has done nothing wrong.
    {absl::StatusCode::kResourceExhausted, "RESOURCE_EXHAUSTED", 503},
    {absl::StatusCode::kFailedPrecondition, "FAILED_PRECONDITION", 409},
    {absl::StatusCode::kAborted, "ABORTED", 409},
    // A revision that this store has not reached: it is another store now.
    {absl::StatusCode::kOutOfRange, "OUT_OF_RANGE", 410},
    {absl::StatusCode::kUnimplemented, "UNIMPLEMENTED", 501},
    {absl::StatusCode::kInternal, "INTERNAL", 500},
    {absl::StatusCode::kUnavailable, "UNAVAILABLE", 503},
    {absl::StatusCode::kDataLoss, "DATA_LOSS", 500},
    {absl::StatusCode::kUnauthenticated, "UNAUTHENTICATED", 401},
};

const Row& RowOf(absl::StatusCode code) {
  for (const Row& row : kTable) {
    if (row.code == code) return row;
  }
  return RowOf(absl::StatusCode::kUnknown);
}

Json DetailJson(const ErrorDetail& detail) {
  Json json = {{"field", detail.field}, {"reason", detail.reason}};
  if (detail.line > 0) json["line"] = detail.line;
  if (detail.column > 0) json["column"] = detail.column;
  return json;
}

std::string PlaceOf(const experiment::Finding& finding) {
  if (finding.line == 0) return "";
  return absl::StrCat("line ", finding.line, ", column ", finding.column, ": ");
}

Status WithDetails(Status status, const Json& details) {
  const std::string text = JsonText(details);
  status.SetPayload(kDetails, absl::Cord(text));
  return status;
}

}  // namespace

Status BadField(const std::string& field, const std::string& reason) {
  return WithDetails(absl::InvalidArgumentError(absl::StrCat(field, " ", reason)),
                     Json::array({DetailJson({.field = field, .reason = reason})}));
}

Status BadSpec(const std::string& what, const std::vector<experiment::Finding>& findings) {
  Json details = Json::array();
  std::string first;
  for (const experiment::Finding& finding : findings) {
    if (finding.warning) continue;
    if (details.empty()) first = PlaceOf(finding) + experiment::InWords(finding);
    details.push_back(DetailJson({.field = finding.path,
                                  .reason = finding.message,
                                  .line = finding.line,
                                  .column = finding.column}));
  }
  const std::string more =
      details.size() > 1 ? absl::StrCat(" (and ", details.size() - 1, " more)") : "";
  return WithDetails(absl::InvalidArgumentError(absl::StrCat(what, ": ", first, more)), details);
}

Status WithHttpStatus(const Status& status, int http_status) {
  Status copy = status;
  copy.SetPayload(kHttpStatus, absl::Cord(std::to_string(http_status)));
  return copy;
}

Status TooMany(const Status& status) {
  return absl::IsResourceExhausted(status) ? WithHttpStatus(status, 429) : status;
}

int HttpStatusOf(const Status& status) {
  const auto own = status.GetPayload(kHttpStatus);
  return own ? std::stoi(std::string(*own)) : RowOf(status.code()).http;
}

std::string CodeWord(absl::StatusCode code) { return RowOf(code).word; }

HttpReply ErrorReply(const Status& status) {
  HttpReply reply;
  reply.status = HttpStatusOf(status);
  const auto details = status.GetPayload(kDetails);
  const Json body = {
      {"code", CodeWord(status.code())},
      {"message", Message(status)},
      {"details", details ? ReadJsonOrDiscarded<Json>(std::string(*details)) : Json::array()}};
  reply.body = JsonText(body) + "\n";
  if (reply.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (reply.status == 429 || reply.status == 503) {
    reply.headers.emplace_back("Retry-After", kRetryAfterSeconds);
  }
  return reply;
}

}  // namespace shirabe::service
