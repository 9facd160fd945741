// Exponential backoff: how long to wait before something that fails is tried again. A pure value;
// callers add jitter where many of them would come back at the same time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace shirabe {

struct Backoff {
  absl::Duration first;
  absl::Duration max;

  // `first`, doubled so often, at most `max`.
  absl::Duration Delay(int doublings) const {
    return std::min(max, first * (int64_t{1} << std::clamp(doublings, 0, 30)));
  }
};

}  // namespace shirabe
