#include "suggestion/ranking.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace shirabe::suggestion {

Ranking RankTrials(const History& history) {
  Ranking ranking;
  // Sorted by value rather than through the history: it is what a suggestion waits for.
  std::vector<std::tuple<bool, int64_t, double, int64_t>> keys;
  keys.reserve(history.size());
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialView& trial = history.trial(i);
    if (trial.state == TrialState::kActive) {
      ranking.pending.push_back(i);
    } else if (trial.state == TrialState::kInfeasible || !std::isfinite(trial.loss)) {
      ranking.failed.push_back(i);
    } else {
      const int64_t step = trial.early_stopped ? trial.last_step : 0;
      keys.emplace_back(trial.early_stopped, ~step, trial.loss, i);  // ~: descending
    }
  }
  std::sort(keys.begin(), keys.end());
  ranking.ranked.reserve(keys.size());
  for (const auto& key : keys) ranking.ranked.push_back(std::get<3>(key));
  return ranking;
}

}  // namespace shirabe::suggestion
