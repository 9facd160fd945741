// Lines for operators on stderr: text on a terminal, one JSON object a line elsewhere. Never the
// only place where something is said: what matters to a user is also in a status or an event.
// Thread-safe; a line is written by one write().
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace shirabe {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  std::string_view key;
  std::string value;
};

// Lines below it are dropped. kWarning at the start.
void SetLogLevel(LogLevel level);

// `message` is a fixed text; what varies goes into fields: experiment, trial, attempt, …
void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace shirabe
