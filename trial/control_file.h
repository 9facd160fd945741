// The control file: how a program is told what is wanted of it (design: {"id", "reason",
// "deadline"}, replaced by rename). Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::trial {

// What a program is told of `why`: "preempt" if its trial will go on in another attempt,
// "early-stop", or "cancel".
std::string ControlReason(v1::Cause why);

struct ControlRequest {
  std::string reason;
  absl::Time deadline;
};

// Puts the request in place of the one before, with an id greater by one.
Status WriteControl(const std::string& path, const ControlRequest& request);

}  // namespace shirabe::trial
