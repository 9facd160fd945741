#include "suggestion/objective_curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shirabe::suggestion {
namespace {

constexpr size_t kMostPeers = 1000;  // sorting more for each report would take too long

// The losses of a trial at a step, its best or its averages, by objective; none where one of them
// is not known.
std::vector<double> LossesAt(int64_t index, int64_t step, int64_t means_from,
                             const Curves& curves) {
  std::vector<double> losses;
  const auto add = [&](const std::vector<Curve>& objective) {
    const bool known = index < static_cast<int64_t>(objective.size());
    const Curve::Point* point = known ? objective[index].At(step) : nullptr;
    if (point == nullptr) return false;
    losses.push_back(means_from > 0 ? objective[index].MeanFrom(means_from, *point) : point->best);
    return true;
  };
  const bool known = add(curves) && std::all_of(curves.further.begin(), curves.further.end(), add);
  return known ? losses : std::vector<double>();
}

}  // namespace

std::string ShowObjectives(const std::vector<double>& losses, const StopProblem& problem) {
  std::vector<std::string> words;
  for (size_t k = 0; k < losses.size(); ++k) {
    const bool maximize = k == 0 ? problem.maximize : problem.further_maximize[k - 1];
    words.push_back(MetricDirection{maximize}.Show(losses[k]));
  }
  return absl::StrCat("(", absl::StrJoin(words, ", "), ")");
}

std::optional<CurveStanding> StandingAt(const CurveQuestion& question,
                                        const std::vector<int64_t>& peers, const Curves& curves,
                                        const StopProblem& problem) {
  std::vector<Individual> all(1);
  all[0].losses = LossesAt(question.trial, question.step, /*means_from=*/0, curves);
  if (all[0].losses.empty()) return std::nullopt;
  CurveStanding standing{.values = ShowObjectives(all[0].losses, problem)};
  for (auto peer = peers.rbegin(); peer != peers.rend() && all.size() <= kMostPeers; ++peer) {
    std::vector<double> losses = LossesAt(*peer, question.step, question.means_from, curves);
    if (losses.empty()) continue;
    all.emplace_back();
    all.back().losses = std::move(losses);
  }
  standing.peers = static_cast<int64_t>(all.size()) - 1;
  // A curve that has diverged has no distance to others.
  const bool finite = std::all_of(all.begin(), all.end(), [](const Individual& one) {
    return std::all_of(one.losses.begin(), one.losses.end(),
                       [](double loss) { return std::isfinite(loss); });
  });
  if (!finite) ReplaceByRanks(all);
  standing.place = PlaceOf(0, all);
  return standing;
}

}  // namespace shirabe::suggestion
