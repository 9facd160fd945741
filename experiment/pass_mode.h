// How one pass of the reconciler (pass.h) is to be made. Data.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "experiment/inbox.h"

namespace shirabe::experiment {

struct PassMode {
  bool suspended = false;               // stop what runs, keep it for later
  bool stop_now = false;                // without grace
  bool heed = false;                    // a wish was written just now
  bool recheck = false;                 // there may be room now for what had to wait for it
  std::vector<LetterPtr> letters = {};  // reports to take; the caller answers them
};

// There was no room for an attempt: until it is asked for again, at first.
inline constexpr absl::Duration kRoomPause = absl::Seconds(1);

}  // namespace shirabe::experiment
