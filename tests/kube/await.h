// Waits for what another thread is about to do.
#pragma once

#include "base/clock.h"

namespace shirabe::kube {

// Until `condition` holds; false if it does not within `patience`.
template <class Condition>
bool Await(const Condition& condition, absl::Duration patience = absl::Seconds(20)) {
  const absl::Duration deadline = RealClock()->Monotonic() + patience;
  while (!condition()) {
    if (RealClock()->Monotonic() > deadline) return false;
    Pause(absl::Milliseconds(2));
  }
  return true;
}

}  // namespace shirabe::kube
