// That an attempt has not started because the code package of its experiment is not there. Told by
// executors, read by the reconciler, which says it in an event.
#pragma once

#include <string>

#include "absl/strings/cord.h"
#include "base/status.h"

namespace shirabe::trial {

inline constexpr char kCodeErrorPayload[] = "shirabe.dev/code-package";

inline Status CodeError(absl::StatusCode code, const std::string& message) {
  Status status(code, message);
  status.SetPayload(kCodeErrorPayload, absl::Cord("1"));
  return status;
}

inline bool IsCodeError(const Status& status) {
  return status.GetPayload(kCodeErrorPayload).has_value();
}

}  // namespace shirabe::trial
