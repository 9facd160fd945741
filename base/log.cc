#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/timestamp.h"

namespace shirabe {
namespace {

std::atomic<LogLevel> least_level = LogLevel::kWarning;

std::string_view NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "error";
}

std::string AsText(LogLevel level, std::string_view message,
                   std::initializer_list<LogField> fields) {
  std::string line(NameOf(level));
  line.append(": ").append(message);
  for (const LogField& field : fields) {
    line.append(" ").append(field.key).append("=").append(field.value);
  }
  return line + "\n";
}

std::string AsJson(LogLevel level, std::string_view message,
                   std::initializer_list<LogField> fields) {
  nlohmann::ordered_json line;
  line["ts"] = absl::FormatTime(absl::RFC3339_full, RealClock()->Now(), absl::UTCTimeZone());
  line["level"] = NameOf(level);
  line["msg"] = message;
  for (const LogField& field : fields) line[std::string(field.key)] = field.value;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

void SetLogLevel(LogLevel level) { least_level = level; }

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < least_level) return;
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  const std::string line =
      terminal ? AsText(level, message, fields) : AsJson(level, message, fields);
  // A closed or full stderr cannot be repaired here.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace shirabe
