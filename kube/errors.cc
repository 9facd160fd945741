#include "kube/errors.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "base/printable.h"

namespace shirabe::kube {
namespace {

constexpr size_t kMaxMessage = 2000;  // of a server, in a message

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
bool IsUnknownPath(const HttpAnswer& answer) {
  return answer.status == 404 && answer.body.starts_with("404 page not found");
}

}  // namespace

Status ToStatus(const std::string& what, int http_status, const Json& status) {
  std::string words = Shortened(TextAt(status, {"message"}));
  if (words.empty()) words = "no reason given";
  return Status(CodeOf(http_status, TextAt(status, {"reason"})),
                absl::StrCat(what, ": ", words, " (", http_status, ")"));
}

Status ToStatus(const std::string& what, const HttpAnswer& answer) {
  const Json said = ParseServerJson(answer.body);
  if (TextAt(said, {"kind"}) == "Status") return ToStatus(what, answer.status, said);
  Status status = ToStatus(what, answer.status, Json{{"message", answer.body}});
  // What stands before the server answers in words of its own, or a web page, and knows nothing of
  // what is there and what is not.
  const bool unknowing =
      absl::IsNotFound(status) || absl::IsAborted(status) || absl::IsOutOfRange(status);
  if (!unknowing || IsUnknownPath(answer)) return status;
  return absl::UnavailableError(status.message());
}

}  // namespace shirabe::kube
