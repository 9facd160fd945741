// Which attempts are given up where more run than may, as after parallelTrialCount was lowered:
// those that lose least by it, and none that loses much. Pure functions, called by
// experiment/plan.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace shirabe::experiment {

// An attempt that is open and not ending.
struct VictimCandidate {
  int64_t trial = 0;
  // Of its running time, what no checkpoint has: infinite where that is not known.
  absl::Duration unsaved = absl::InfiniteDuration();
  double price_per_hour = 0;  // 0 = its machine has no price
};

struct Victim {
  int64_t trial = 0;
  std::string why;  // in words: what it loses, of how many
};

// At most `surplus` of them, and only such as lose no more than `most`: one that has saved nothing
// for longer runs on until it saves, or ends. First those whose loss costs least, unsaved time
// times price; where no machine has a price, time alone; of equals the newest trial.
std::vector<Victim> ChooseVictims(std::vector<VictimCandidate> candidates, int64_t surplus,
                                  absl::Duration most);

}  // namespace shirabe::experiment
