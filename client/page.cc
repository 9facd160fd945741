#include "client/page.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "client/rows.h"
#include "client/table.h"

namespace shirabe::client {
namespace {

constexpr size_t kLabelWidth = 14;
constexpr size_t kRecentEvents = 10;

}  // namespace

void Page::Line(const std::string& label, const std::string& text) {
  if (text.empty()) return;
  std::string line = label + ":";
  line.resize(std::max(kLabelWidth, line.size() + 1), ' ');
  text_ += line + Printable(text) + "\n";
}

void Page::Block(const std::string& heading, const std::string& lines) {
  if (lines.empty()) return;
  text_ += heading + ":\n";
  for (const auto& line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&text_, "  ", Printable(std::string(line)), "\n");
  }
}

std::string When(const google::protobuf::Timestamp& time, absl::Time now) {
  if (time.seconds() == 0) return "";
  return absl::StrCat(FormatTime(time), " (", FormatAge(now - FromProto(time)), " ago)");
}

std::string Because(const std::string& reason, const std::string& message) {
  if (reason.empty()) return message.empty() ? "" : " (" + message + ")";
  return absl::StrCat(" (", reason, message.empty() ? "" : ": " + message, ")");
}

StatusOr<std::string> EventsTable(Client& client, const TrialKey& key, absl::Time now) {
  ASSIGN_OR_RETURN(auto events, client.ListEvents({.experiment = key.experiment}));
  if (key.number > 0) {
    std::erase_if(events, [&](const v1::Event& event) { return event.trial() != key.number; });
  }
  if (events.empty()) return "";
  if (events.size() > kRecentEvents) events.erase(events.begin(), events.end() - kRecentEvents);
  Table table(EventHeader());
  for (const v1::Event& event : events) table.Add(EventRow(event, {.now = now}));
  return table.Take();
}

}  // namespace shirabe::client
