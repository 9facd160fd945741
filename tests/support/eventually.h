// Waits for what another thread or process brings about.
#pragma once

#include <poll.h>

#include <functional>

#include "absl/time/time.h"
#include "base/clock.h"

namespace shirabe {

// Whether it became true within the time, asking again and again.
inline bool Eventually(const std::function<bool()>& condition,
                       absl::Duration patience = absl::Seconds(60)) {
  const absl::Duration deadline = RealClock()->Monotonic() + patience;
  while (!condition()) {
    if (RealClock()->Monotonic() > deadline) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

}  // namespace shirabe
