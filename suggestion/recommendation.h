// The trial to use in the end, where the best result is not the best trial: of many noisy results
// the best one is also the luckiest. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace shirabe::suggestion {

struct Recommendation {
  int64_t trial = 0;     // index in the history; a completed one
  double loss = 0;       // predicted there, without the noise of a single result
  double deviation = 0;  // of that prediction, in the same unit
  std::string reason;    // one line for people
};

}  // namespace shirabe::suggestion
