#include "suggestion/gp/results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "suggestion/gp/warp.h"

namespace shirabe::suggestion::gp {
namespace {

void Thin(Results& results) {
  const auto n = static_cast<int64_t>(results.points.size());
  if (n <= Results::kMaxPoints) return;
  const int64_t latest = Results::kMaxPoints / 2, best = Results::kMaxPoints - latest;
  std::vector<int64_t> kept(n);
  std::iota(kept.begin(), kept.end(), 0);
  const auto better = [&](int64_t a, int64_t b) {
    return results.scores[a] != results.scores[b] ? results.scores[a] > results.scores[b] : a < b;
  };
  std::nth_element(kept.begin(), kept.begin() + best, kept.end() - latest, better);
  kept.erase(kept.begin() + best, kept.end() - latest);
  std::sort(kept.begin(), kept.end());
  for (size_t i = 0; i < kept.size(); ++i) {
    if (static_cast<int64_t>(i) == kept[i]) continue;
    results.points[i] = std::move(results.points[kept[i]]);
    results.scores[i] = results.scores[kept[i]];
    results.numbers[i] = results.numbers[kept[i]];
  }
  results.points.resize(kept.size());
  results.scores.resize(kept.size());
  results.numbers.resize(kept.size());
}

void KeepLatest(std::vector<Point>& points) {
  const auto surplus = static_cast<int64_t>(points.size()) - Results::kMaxOthers;
  if (surplus > 0) points.erase(points.begin(), points.begin() + surplus);
}

}  // namespace

bool Results::Learnable() const {
  if (scores.size() < 2) return false;
  const Eigen::Map<const Eigen::VectorXd> values(scores.data(),
                                                 static_cast<Eigen::Index>(scores.size()));
  return Standardize(values).squaredNorm() > 0;
}

Results Gather(const History& history, int64_t initial) {
  Results results;
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialView& trial = history.trial(i);
    if (trial.state == TrialState::kActive) {
      results.pending.push_back(history.point(i));
      continue;
    }
    if (i < initial) ++results.initial;
    const bool result = trial.state == TrialState::kCompleted && std::isfinite(trial.loss);
    results.ends.push_back(result ? -trial.loss : -std::numeric_limits<double>::infinity());
    if (!result) {
      results.failed.push_back(history.point(i));
      continue;
    }
    results.points.push_back(history.point(i));
    results.scores.push_back(-trial.loss);
    results.numbers.push_back(i + 1);
  }
  Thin(results);
  KeepLatest(results.failed);
  KeepLatest(results.pending);
  return results;
}

}  // namespace shirabe::suggestion::gp
