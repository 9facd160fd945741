#include "suggestion/objective_curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shirabe::suggestion {
namespace {

constexpr size_t kMostPeers = 1000;  // sorting more for each report would take too long

const Curve::Point* PointAt(const std::vector<Curve>& curves, int64_t index, int64_t step) {
  if (index >= static_cast<int64_t>(curves.size())) return nullptr;
  return curves[index].At(step);
}

// By objective; empty where one is not known.
std::vector<const Curve::Point*> PointsAt(int64_t index, int64_t step, const Curves& curves) {
  std::vector<const Curve::Point*> points = {PointAt(curves, index, step)};
  for (const auto& further : curves.further) points.push_back(PointAt(further, index, step));
  const bool known =
      std::all_of(points.begin(), points.end(), [](auto* p) { return p != nullptr; });
  return known ? points : std::vector<const Curve::Point*>();
}

Individual IndividualOf(const std::vector<const Curve::Point*>& points, bool means) {
  Individual individual;
  for (const Curve::Point* point : points) {
    individual.losses.push_back(means ? point->mean : point->best);
  }
  return individual;
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
  const auto own = PointsAt(question.trial, question.step, curves);
  if (own.empty()) return std::nullopt;
  std::vector<Individual> all = {IndividualOf(own, /*means=*/false)};
  CurveStanding standing{.values = ShowObjectives(all[0].losses, problem)};
  for (auto peer = peers.rbegin(); peer != peers.rend() && all.size() <= kMostPeers; ++peer) {
    const auto points = PointsAt(*peer, question.step, curves);
    if (!points.empty()) all.push_back(IndividualOf(points, question.means));
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
