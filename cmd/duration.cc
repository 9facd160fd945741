#include "cmd/duration.h"

#include "base/number.h"
#include "cmd/options.h"

namespace shirabe::cmd {

StatusOr<absl::Duration> ParseDurationOr(const std::string& option, const std::string& text,
                                         absl::Duration otherwise) {
  if (text.empty()) return otherwise;
  absl::Duration duration;
  const bool bare = ParseNumber(text).has_value();
  if (absl::ParseDuration(bare ? text + "s" : text, &duration) &&
      duration >= absl::ZeroDuration()) {
    return duration;
  }
  return UsageError(option + " " + text + " is no duration: write 30s, 10m or 2h");
}

}  // namespace shirabe::cmd
