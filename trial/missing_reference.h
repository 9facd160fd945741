// The error of Executor::Start for an attempt whose pods name what is not there yet: a Secret, a
// ConfigMap, a claim. Nothing was made, and it starts by itself once it is there. Pure functions.
#pragma once

#include <string>

#include "absl/strings/cord.h"
#include "base/status.h"

namespace shirabe::trial {

inline constexpr char kMissingReferencePayload[] = "shirabe.dev/missing-reference";

// kResourceExhausted.
inline Status MissingReference(const std::string& what) {
  Status status = absl::ResourceExhaustedError(what);
  status.SetPayload(kMissingReferencePayload, absl::Cord());
  return status;
}

inline bool IsMissingReference(const Status& status) {
  return status.GetPayload(kMissingReferencePayload).has_value();
}

}  // namespace shirabe::trial
