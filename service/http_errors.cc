#include "service/http_errors.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "experiment/findings.h"

namespace shirabe::service {
namespace {

using Json = nlohmann::ordered_json;

// Payloads of a status, for this door alone.
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
  const std::string text = details.dump(-1, ' ', false, Json::error_handler_t::replace);
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
  reply.body = body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (reply.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (reply.status == 429 || reply.status == 503) {
    reply.headers.emplace_back("Retry-After", kRetryAfterSeconds);
  }
  return reply;
}

}  // namespace shirabe::service
