// The trials that have ended, best first: what the model-based and the evolutionary algorithms
// learn from. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "suggestion/history.h"

namespace shirabe::suggestion {

struct Ranking {
  // Indices into the history. First what completed, by loss; then what was stopped early, that
  // which came furthest first, then by loss: a rule has stopped it because it was worse. Equals in
  // the order of creation.
  std::vector<int64_t> ranked;
  // Infeasible, or with a loss that is no finite number: worse than everything above.
  std::vector<int64_t> failed;
  std::vector<int64_t> pending;

  int64_t ended() const { return static_cast<int64_t>(ranked.size() + failed.size()); }
};

Ranking RankTrials(const History& history);

}  // namespace shirabe::suggestion
