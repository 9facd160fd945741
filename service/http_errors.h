// Errors as HTTP says them: a status from the code, by one table, and a body
//   {"code": "NOT_FOUND", "message": "…", "details": [{"field": "…", "reason": "…"}]}
// Used by the routes. Pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "experiment/spec.h"
#include "service/http_message.h"

namespace shirabe::service {

// What is wrong with one part of a request; line and column where it was read from a text.
struct ErrorDetail {
  std::string field;  // spec.parameters[1].name, pageSize, If-Match
  std::string reason;
  int line = 0;
  int column = 0;
};

// kInvalidArgument about one parameter, header or field.
Status BadField(const std::string& field, const std::string& reason);
// kInvalidArgument with every error among the findings as a detail; there is one at least.
Status BadSpec(const std::string& what, const std::vector<experiment::Finding>& findings);
// A status that only HTTP knows (405, 412, 413, 415, 429) instead of that of its code.
Status WithHttpStatus(const Status& status, int http_status);

// kResourceExhausted of a limit that the caller himself has reached: 429.
Status TooMany(const Status& status);

int HttpStatusOf(const Status& status);
// INVALID_ARGUMENT, NOT_FOUND, …
std::string CodeWord(absl::StatusCode code);
// With WWW-Authenticate on 401, and Retry-After where trying again helps.
HttpReply ErrorReply(const Status& status);

}  // namespace shirabe::service
