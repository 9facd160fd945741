#include "experiment/spec/findings.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/rng.h"
#include "base/sorting.h"

namespace shirabe::experiment {
namespace {

constexpr size_t kMaxShownKey = 320;       // the longest that Kubernetes knows, of labels, has 317
constexpr size_t kMaxMessageBytes = 2000;  // bytes: it may quote what the user wrote
constexpr size_t kMaxJoined = 20;          // errors in one message

bool IsPlainWord(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  });
}

bool IsBelow(std::string_view path, std::string_view root) {
  return path.size() > root.size() && path.substr(0, root.size()) == root &&
         (path[root.size()] == '.' || path[root.size()] == '[');
}

// Removes the last step of a path. Within a key in quotes that gives no true path, and none is
// found under it; the next cuts leave the quotes behind.
void GoUp(std::string& path) {
  const size_t cut = path.find_last_of(".[");
  path.resize(cut == path.npos ? 0 : cut);
}

}  // namespace

std::string ChildPath(const std::string& path, std::string_view key) {
  if (key.size() > kMaxShownKey) {  // paths are made for every value below it
    return ChildPath(path, absl::StrCat(absl::string_view(key.data(), kMaxShownKey / 2), "…",
                                        absl::Hex(Fingerprint(std::string(key)))));
  }
  if (!IsPlainWord(key)) return path + "[\"" + std::string(key) + "\"]";
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

std::string InWords(const Finding& finding) {
  return finding.path.empty() ? finding.message : finding.path + ": " + finding.message;
}

std::string ItemPath(const std::string& path, int index) {
  return path + "[" + std::to_string(index) + "]";
}

void Findings::SetLocation(const std::string& path, Mark mark) {
  places_.emplace(Fingerprint(path), mark);
}

void Findings::MarkUnreadable(const std::string& path, Mark mark, std::string message) {
  // After so many, the rules would say nothing of use about the rest.
  unread_.insert(full() ? "" : path);
  Add({false, path, std::move(message)}, mark);
}

bool Findings::IsUnreadable(const std::string& path) const {
  if (IsUnreadableAbove(path)) return true;
  for (const char* next : {".", "["}) {
    const auto below = unread_.lower_bound(path + next);
    if (below != unread_.end() && IsBelow(*below, path)) return true;
  }
  return false;
}

void Findings::Error(const std::string& path, std::string message) {
  if (!IsUnreadableAbove(path)) Add({false, path, std::move(message)}, LocationOf(path));
}

void Findings::Warn(const std::string& path, std::string message) {
  if (!IsUnreadable(path)) Add({true, path, std::move(message)}, LocationOf(path));
}

std::vector<Finding> Findings::Sorted() {
  StableSort(findings_, [](const Finding& a, const Finding& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (more_) {
    const Finding& last = findings_.back();
    findings_.push_back(
        {errors_ == 0, "", "there are more; correct these first", last.line, last.column});
  }
  return std::move(findings_);
}

void Findings::Add(Finding finding, Mark mark) {
  errors_ += finding.warning ? 0 : 1;
  if (full()) {
    more_ = true;
    return;
  }
  // Names and values of a file are shown on terminals.
  const bool cut = finding.message.size() > kMaxMessageBytes;
  finding.message = Printable(finding.message.substr(0, kMaxMessageBytes)) + (cut ? "…" : "");
  finding.path = Printable(finding.path);
  finding.line = mark.line;
  finding.column = mark.column;
  findings_.push_back(std::move(finding));
}

Mark Findings::LocationOf(std::string path) const {
  for (;;) {
    const auto found = places_.find(Fingerprint(path));
    if (found != places_.end()) return found->second;
    if (path.empty()) return {};
    GoUp(path);
  }
}

bool Findings::IsUnreadableAbove(std::string path) const {
  for (; !path.empty(); GoUp(path)) {
    if (unread_.count(path) > 0) return true;
  }
  return unread_.count("") > 0;
}

bool HasErrors(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return !finding.warning; });
}

std::string FormatFinding(const Finding& finding, std::string_view file) {
  std::string text(file);
  if (finding.line > 0) {
    if (!text.empty()) text += ":";
    text += std::to_string(finding.line) + ":" + std::to_string(finding.column);
  }
  if (!text.empty()) text += ": ";
  text += finding.warning ? "warning: " : "error: ";
  return text + InWords(finding);
}

std::string JoinProblems(const std::vector<std::string>& problems, size_t most) {
  std::string text;
  for (size_t i = 0; i < problems.size() && i < most; ++i) {
    absl::StrAppend(&text, i > 0 ? "\n" : "", problems[i]);
  }
  if (problems.size() > most) absl::StrAppend(&text, "\nand ", problems.size() - most, " more");
  return text;
}

Status JoinErrors(const std::vector<Finding>& findings) {
  std::vector<std::string> errors;
  for (const Finding& finding : findings) {
    if (!finding.warning) errors.push_back(FormatFinding(finding, ""));
  }
  if (errors.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(JoinProblems(errors, kMaxJoined));
}

}  // namespace shirabe::experiment
