#include "kube/api_errors.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/text/json_text.h"

namespace shirabe::kube {
namespace {

constexpr size_t kMaxMessage = 2000;  // of a server, in a message
// The API server has no reason of its own for it, but a cause in the details, and these words.
constexpr char kTerminating[] = "because it is being terminated";

absl::StatusCode CodeOf(int http_status, const std::string& reason) {
  if (reason == "AlreadyExists") return absl::StatusCode::kAlreadyExists;
  // A watch that asks for more than the server remembers is told so in either form.
  if (reason == "Expired" || reason == "Gone") return absl::StatusCode::kOutOfRange;
  switch (http_status) {
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422: return absl::StatusCode::kInvalidArgument;
    case 401:
    case 403: return absl::StatusCode::kPermissionDenied;
    case 404: return absl::StatusCode::kNotFound;
    case 409: return absl::StatusCode::kAborted;
    case 410: return absl::StatusCode::kOutOfRange;
    case 429: return absl::StatusCode::kResourceExhausted;
    case 504: return absl::StatusCode::kDeadlineExceeded;
    default: return absl::StatusCode::kUnavailable;
  }
}

std::string Shortened(const std::string& text) {
  const std::string words = Printable(std::string(absl::StripAsciiWhitespace(text)));
  return words.size() <= kMaxMessage ? words : words.substr(0, kMaxMessage) + "…";
}

// What the API server itself says of a path that it does not have.
bool IsUnknownPath(const net::HttpResponse& answer) {
  return answer.status == 404 && answer.body.starts_with("404 page not found");
}

}  // namespace

Status ToStatus(const std::string& what, int http_status, const Json& status) {
  std::string words = Shortened(Text(status, {"message"}));
  if (words.empty()) words = "no reason given";
  return Status(CodeOf(http_status, Text(status, {"reason"})),
                absl::StrCat(what, ": ", words, " (", http_status, ")"));
}

Status ToStatus(const std::string& what, const net::HttpResponse& answer) {
  const Json said = ParseServerJson(answer.body);
  if (Text(said, {"kind"}) == "Status") return ToStatus(what, answer.status, said);
  Status status = ToStatus(what, answer.status, Json{{"message", answer.body}});
  // What stands before the server answers in words of its own, or a web page, and knows nothing of
  // what is there and what is not.
  const bool unknowing =
      absl::IsNotFound(status) || absl::IsAborted(status) || absl::IsOutOfRange(status);
  if (!unknowing || IsUnknownPath(answer)) return status;
  return absl::UnavailableError(status.message());
}

bool IsNamespaceGone(const Status& status) {
  return absl::IsNotFound(status) ||
         (absl::IsPermissionDenied(status) && absl::StrContains(status.message(), kTerminating));
}

namespace {

// An object has at most 3 MiB, as JSON, of what the API server accepts.
constexpr size_t kMaxLine = 16 << 20;

std::optional<WatchEvent::Type> TypeOf(const std::string& type) {
  if (type == "ADDED") return WatchEvent::Type::kAdded;
  if (type == "MODIFIED") return WatchEvent::Type::kModified;
  if (type == "DELETED") return WatchEvent::Type::kDeleted;
  if (type == "BOOKMARK") return WatchEvent::Type::kBookmark;
  return std::nullopt;
}

}  // namespace

bool WatchDecoder::Add(std::string_view piece) {
  while (status_.ok()) {
    const size_t end = piece.find('\n');
    line_ += piece.substr(0, end);
    if (line_.size() > kMaxLine) {
      status_ = absl::ResourceExhaustedError(
          absl::StrCat(what_, ": an event has more than ", kMaxLine, " bytes"));
    }
    if (end == std::string_view::npos || !status_.ok()) break;
    Decode(line_);
    line_.clear();
    piece.remove_prefix(end + 1);
  }
  return status_.ok();
}

Status WatchDecoder::End() {
  if (status_.ok() && !line_.empty()) {
    status_ = absl::UnavailableError(what_ + ": it ended in the middle of an event");
  }
  return status_;
}

void WatchDecoder::Decode(std::string_view line) {
  if (line.empty()) return;
  Json event = ParseServerJson(line);
  const auto object = event.is_object() ? event.find("object") : event.end();
  if (event.is_discarded() || object == event.end()) {
    status_ = absl::UnavailableError(what_ + ": a line of it is not an event");
    return;
  }
  const std::string type = Text(event, {"type"});
  if (type == "ERROR") {
    status_ = ToStatus(what_, static_cast<int>(Number(*object, {"code"})), *object);
    return;
  }
  // What a later version of the API may add is passed over.
  if (const auto known = TypeOf(type)) sink_({*known, std::move(*object)});
}

}  // namespace shirabe::kube
