#include "db/postgres_error.h"

#include <cctype>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace shirabe::db {
namespace {

bool InClass(const PostgresError& error, const char* two) {
  return error.state.compare(0, 2, two) == 0;
}

bool IsState(const std::string& text) {
  if (text.size() != 5) return false;
  for (const char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c)) && (c < 'A' || c > 'Z')) return false;
  }
  return true;
}

std::string FirstLine(const std::string& text) {
  return std::string(absl::StripAsciiWhitespace(text.substr(0, text.find('\n'))));
}

// Codes whose meaning is not that of their class; kOk if there is none.
absl::StatusCode SpecialCode(const std::string& state) {
  if (state == "55P03" || state == "53300") return absl::StatusCode::kUnavailable;
  if (state == "3D000") return absl::StatusCode::kNotFound;
  if (state == "42501" || state == "25006") return absl::StatusCode::kPermissionDenied;
  if (state == "3F000" || state == "42P01" || state == "42703") return absl::StatusCode::kDataLoss;
  if (state == "54000") return absl::StatusCode::kInvalidArgument;
  return absl::StatusCode::kOk;
}

absl::StatusCode CodeOf(const PostgresError& error) {
  const absl::StatusCode special = SpecialCode(error.state);
  if (special != absl::StatusCode::kOk) return special;
  if (IsConnectionLost(error) || IsTransient(error)) return absl::StatusCode::kUnavailable;
  if (InClass(error, "53")) return absl::StatusCode::kResourceExhausted;
  if (InClass(error, "28")) return absl::StatusCode::kPermissionDenied;
  if (InClass(error, "22")) return absl::StatusCode::kInvalidArgument;
  if (InClass(error, "XX")) return absl::StatusCode::kDataLoss;
  if (InClass(error, "58")) return absl::StatusCode::kUnavailable;
  return absl::StatusCode::kInternal;
}

const char* FixFor(absl::StatusCode code, const std::string& state) {
  if (state == "53100") return ": its disk is full, make room on the server";
  if (state == "53300") return ": it has no connection left, raise its max_connections";
  if (state == "55P03") return ": another process keeps it locked, try again";
  if (state == "25006") return ": it is read-only, name the primary server in the address";
  if (state == "42501") return ": the user may not, grant CREATE on the database (or the tables)";
  switch (code) {
    case absl::StatusCode::kNotFound: return ": create it with createdb, or name another";
    case absl::StatusCode::kPermissionDenied:
      return ": check the user, ~/.pgpass or PGPASSWORD, and the server's pg_hba.conf";
    case absl::StatusCode::kDataLoss:
      return ": the tables of the schema shirabe are damaged, restore them from a backup";
    case absl::StatusCode::kUnavailable: return ": try again";
    default: return "";
  }
}

}  // namespace

Status StatusOf(const PostgresError& error, const std::string& database) {
  const absl::StatusCode code = CodeOf(error);
  const std::string state = error.state.empty() ? "" : absl::StrCat(" (", error.state, ")");
  return Status(code, absl::StrCat("database ", database, ": ", error.message, state,
                                   FixFor(code, error.state)));
}

bool IsTransient(const PostgresError& error) {
  return error.state == "40001" || error.state == "40P01" || error.state == "57014";
}

bool IsConnectionLost(const PostgresError& error) {
  return error.state.empty() || InClass(error, "08") || absl::StartsWith(error.state, "57P") ||
         error.state == "25P03";
}

// "connection to server … failed: FATAL:  28P01: password authentication failed …\nLOCATION: …",
// with one such piece for each server tried, and the first word in the server's language; what is
// not from a server has no code.
PostgresError ParseConnectError(const std::string& message) {
  PostgresError error{.message = FirstLine(message)};
  if (absl::StrContains(message, "no password supplied")) error.state = "28P01";
  for (size_t at = message.rfind(":  "); at != std::string::npos && at > 0;
       at = message.rfind(":  ", at - 1)) {
    const std::string state = message.substr(at + 3, 5);
    if (!IsState(state) || message.compare(at + 8, 2, ": ") != 0) continue;
    const size_t line = message.rfind('\n', at);
    const size_t first = line == std::string::npos ? 0 : line + 1;
    error.state = state;
    error.message = FirstLine(message.substr(first, at + 3 - first) + message.substr(at + 10));
    break;
  }
  return error;
}

}  // namespace shirabe::db
