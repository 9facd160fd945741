// Errors of Executor::Start about what an attempt needs and is not there: what its pods name, the
// code of its experiment. Each has the reason of the event that tells of it, so that the reconciler
// need not know what it was. Nothing was started. Pure functions.
#pragma once

#include <string>

#include "absl/strings/cord.h"
#include "base/status.h"

namespace shirabe::trial {

// Reasons of events: CamelCase, as Kubernetes has them.
inline constexpr char kReferenceMissing[] = "ReferenceMissing";
inline constexpr char kCodeNotFetched[] = "CodeNotFetched";
inline constexpr char kAccountRefused[] = "TrialAccountRefused";  // the namespace's, for its trials

inline constexpr char kPoolMissing[] = "PoolMissing";  // among the controller's

inline constexpr char kEventReasonPayload[] = "shirabe.dev/event-reason";

// With kResourceExhausted it is tried again, and the event is made; for other codes see
// Executor::Start.
inline Status StartError(absl::StatusCode code, const std::string& event_reason,
                         const std::string& message) {
  Status status(code, message);
  status.SetPayload(kEventReasonPayload, absl::Cord(event_reason));
  return status;
}

// "" of any other error.
inline std::string EventReasonOf(const Status& status) {
  const auto reason = status.GetPayload(kEventReasonPayload);
  return reason ? std::string(*reason) : "";
}

}  // namespace shirabe::trial
