// What the shell learns from an outcome. Scripts depend on these numbers; they never change.
#pragma once

#include "base/status.h"

namespace shirabe::cmd {

enum ExitCode {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,
  kMissing = 3,
  kConflict = 4,  // exists already, differs, or another process has it
  kInvalidSpec = 5,
  kDenied = 6,
  kUnreachable = 7,  // locked, full or gone for now: try again
  kNoSuccess = 8,    // the experiment ended without success
  kShouldStop = 9,   // the trial that reported should stop now
  kTimedOut = 124,
  kInterrupted = 130,
};

// The only place where a status becomes an exit code.
int ExitCodeOf(const Status& status);

}  // namespace shirabe::cmd
