// Waits for what another thread or process brings about.
#pragma once

#include <poll.h>

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>

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

// Removes a folder that processes which have been killed, or their supervisors, may write to yet.
inline bool RemoveFolder(const std::string& folder, absl::Duration patience = absl::Seconds(60)) {
  const auto removed = [&] {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    return !error;
  };
  return Eventually(removed, patience);
}

}  // namespace shirabe
