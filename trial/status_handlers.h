// What becomes of the status that a program sends over HTTP. Executors that listen for it
// (trial/local/attempt_endpoints.h) know which attempt it is of; what it means, their creator knows
// (metrics/trainer_status.h).
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace shirabe::trial {

struct StatusHandlers {
  size_t max_body = 0;  // bytes; what is larger is refused unread
  // For an attempt that has this metrics file. What it returns is called with each body, one at a
  // time; kInvalidArgument if the body is wrong, any other error if it may be sent again. Null: no
  // program is told where to send it.
  std::function<std::function<Status(const std::string& body)>(const std::string& metrics_file)>
      make;
};

}  // namespace shirabe::trial
