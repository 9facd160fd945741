#include "experiment/state/victim_choice.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/sorting.h"

namespace shirabe::experiment {

std::vector<Victim> ChooseVictims(std::vector<VictimCandidate> candidates, int64_t surplus,
                                  absl::Duration most) {
  std::vector<Victim> victims;
  if (surplus <= 0) return victims;
  const size_t running = candidates.size();
  const bool priced = std::any_of(candidates.begin(), candidates.end(),
                                  [](const auto& one) { return one.price_per_hour > 0; });
  std::erase_if(candidates, [&](const VictimCandidate& one) { return one.unsaved > most; });
  const auto loss = [&](const VictimCandidate& one) {
    const double seconds = std::max(0.0, absl::ToDoubleSeconds(one.unsaved));
    return std::tuple(priced ? seconds * one.price_per_hour : seconds, seconds, -one.trial);
  };
  StableSort(candidates, [&](const auto& a, const auto& b) { return loss(a) < loss(b); });
  for (const VictimCandidate& one : candidates) {
    if (static_cast<int64_t>(victims.size()) == surplus) break;
    const double seconds = std::max(0.0, absl::ToDoubleSeconds(one.unsaved));
    std::string lost = absl::StrFormat("%.1f s of its work are not saved", seconds);
    if (one.price_per_hour > 0) {
      lost += absl::StrFormat(", worth %.4f", seconds / 3600 * one.price_per_hour);
    }
    const std::string rank = victims.empty() ? absl::StrFormat("the least of %d that run", running)
                                             : absl::StrFormat("the least of the %d that are left",
                                                               running - victims.size());
    victims.push_back({one.trial, absl::StrCat(lost, ", ", rank)});
  }
  return victims;
}

}  // namespace shirabe::experiment
