// How one pass of the reconciler (pass.h) is to be made. Data.
#pragma once

#include <vector>

#include "experiment/inbox.h"

namespace shirabe::experiment {

struct PassMode {
  bool suspended = false;               // stop what runs, keep it for later
  bool stop_now = false;                // without grace
  bool heed = false;                    // a wish was written just now
  bool recheck = false;                 // there may be room now for what had to wait for it
  std::vector<LetterPtr> letters = {};  // reports to take; the caller answers them
};

}  // namespace shirabe::experiment
