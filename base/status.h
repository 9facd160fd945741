// Status macros and CHECK. Everyone uses them. A status is for what users, networks and child
// processes do wrong, and its message names the field, the value and the fix; CHECK is for what
// cannot happen, is always on, and ends the process.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shirabe {

using absl::Status;
using absl::StatusOr;

// The message as std::string: absl's string_view does not convert to the standard one here.
inline std::string Message(const Status& status) { return std::string(status.message()); }

// The same code, with `prefix: ` before the message; OK stays OK.
Status Prefix(const std::string& prefix, const Status& status);

// kInvalidArgument, as messages name a field: "<path>: <what>".
Status InvalidField(const std::string& path, const std::string& what);

// A failed system call: "<what>: <strerror>", with the code that fits the errno (ENOSPC, EDQUOT
// and EFBIG are kResourceExhausted, ENOENT is kNotFound, EACCES, EPERM and EROFS are
// kPermissionDenied, EEXIST is kAlreadyExists, anything else is kUnavailable).
Status ErrnoStatus(const std::string& what, int error);

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace shirabe

#define SHIRABE_CONCAT_(a, b) a##b
#define SHIRABE_CONCAT(a, b) SHIRABE_CONCAT_(a, b)

#define RETURN_IF_ERROR(expression)                                                      \
  do {                                                                                   \
    if (auto shirabe_status = (expression); !shirabe_status.ok()) return shirabe_status; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expression) \
  SHIRABE_ASSIGN_OR_RETURN_(SHIRABE_CONCAT(shirabe_or_, __LINE__), lhs, expression)
#define SHIRABE_ASSIGN_OR_RETURN_(tmp, lhs, expression) \
  auto tmp = (expression);                              \
  if (!tmp.ok()) return tmp.status();                   \
  lhs = std::move(tmp).value()

#define CHECK(condition) \
  (static_cast<bool>(condition) ? void() : ::shirabe::CheckFailed(__FILE__, __LINE__, #condition))
