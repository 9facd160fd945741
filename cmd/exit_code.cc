#include "cmd/exit_code.h"

#include "cmd/options.h"

namespace shirabe::cmd {

int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return kOk;
    case absl::StatusCode::kInvalidArgument: return IsUsage(status) ? kUsage : kInvalidSpec;
    case absl::StatusCode::kNotFound: return kMissing;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition: return kConflict;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated: return kDenied;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted: return kUnreachable;
    case absl::StatusCode::kDeadlineExceeded: return kTimedOut;
    case absl::StatusCode::kCancelled: return kInterrupted;
    default: return kFailure;
  }
}

}  // namespace shirabe::cmd
