// Durations as people write them: 30s, 10m, 1h30m; a bare number is seconds. Called by the verbs
// that wait. A pure function.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "base/status.h"

namespace shirabe::cmd {

// `otherwise` for "". A usage error, naming the option, for what is no duration of at least zero.
StatusOr<absl::Duration> ParseDurationOr(const std::string& option, const std::string& text,
                                         absl::Duration otherwise);

}  // namespace shirabe::cmd
