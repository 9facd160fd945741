// "This experiment is not yours any more": the one error that makes an owner let an experiment go.
// Said by the check of a write's epoch (db/rules.h) and by whoever compares a lease with his own;
// recognised by what the status carries and not by its code, which a file or a call may also give.
// Pure functions.
#pragma once

#include <string>

#include "base/status.h"

namespace shirabe::db {

// kFailedPrecondition, for callers who only show it.
Status LeaseLostError(const std::string& message);
// Also of one that Prefix has put words before.
bool IsLeaseLost(const Status& status);

}  // namespace shirabe::db
