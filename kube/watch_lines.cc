#include "kube/watch_lines.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "base/json_text.h"
#include "kube/errors.h"

namespace shirabe::kube {
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

bool WatchLines::Add(std::string_view piece) {
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

Status WatchLines::End() {
  if (status_.ok() && !line_.empty()) {
    status_ = absl::UnavailableError(what_ + ": it ended in the middle of an event");
  }
  return status_;
}

void WatchLines::Decode(std::string_view line) {
  if (line.empty()) return;
  Json event = ParseServerJson(line);
  const auto object = event.is_object() ? event.find("object") : event.end();
  if (event.is_discarded() || object == event.end()) {
    status_ = absl::UnavailableError(what_ + ": a line of it is no event");
    return;
  }
  const std::string type = TextAt(event, {"type"});
  if (type == "ERROR") {
    status_ = ToStatus(what_, static_cast<int>(IntegerAt(*object, {"code"})), *object);
    return;
  }
  // What a later version of the API may add is passed over.
  if (const auto known = TypeOf(type)) sink_({*known, std::move(*object)});
}

}  // namespace shirabe::kube
