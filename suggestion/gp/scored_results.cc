#include "suggestion/gp/scored_results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/statistics.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::VectorXd;

// The grid for λ; 1 is the identity.
constexpr double kMinPower = -4, kMaxPower = 6, kPowerStep = 0.1;

// (2.1) of the paper, for z ≥ 0 and z < 0.
ArrayXd YeoJohnson(const ArrayXd& z, double power) {
  const ArrayXd logs = z.abs().log1p();
  // exp(p·log1p|z|) - 1 over p, and its limit.
  const auto branch = [&logs](double p) -> ArrayXd {
    if (std::abs(p) < 1e-8) return logs;
    return (p * logs).unaryExpr([](double e) { return std::expm1(e); }) / p;
  };
  return (z >= 0).select(branch(power), -branch(2 - power));
}

// The profile log-likelihood (3.1), over n.
double LogLikelihood(const ArrayXd& z, const ArrayXd& mapped, double power) {
  const double variance = (mapped - mapped.mean()).square().mean();
  const double jacobian = (z.sign() * z.abs().log1p()).mean();
  return -0.5 * std::log(variance + 1e-300) + (power - 1) * jacobian;
}

VectorXd BestYeoJohnson(const VectorXd& scores) {
  const ArrayXd z = Standardize(scores).array();
  ArrayXd best = z;
  double most = LogLikelihood(z, z, 1);
  const int steps = static_cast<int>(std::lround((kMaxPower - kMinPower) / kPowerStep));
  for (int i = 0; i <= steps; ++i) {
    const double power = kMinPower + i * kPowerStep;
    ArrayXd mapped = YeoJohnson(z, power);
    const double likelihood = LogLikelihood(z, mapped, power);
    if (!(likelihood > most) || !mapped.isFinite().all()) continue;
    most = likelihood;
    best = std::move(mapped);
  }
  return best;
}

std::vector<double> Distinct(std::span<const double> values) {
  std::vector<double> distinct(values.begin(), values.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return distinct;
}

VectorXd HalfRank(const VectorXd& scores) {
  VectorXd y = Standardize(scores);
  const std::vector<double> levels = Distinct({y.data(), static_cast<size_t>(y.size())});
  const double median = Median({y.begin(), y.end()});
  const auto upper = std::lower_bound(levels.begin(), levels.end(), median);
  double squares = 0;
  for (auto level = upper; level != levels.end(); ++level) {
    squares += (*level - median) * (*level - median);
  }
  const double deviation = std::sqrt(squares / std::max<double>(1, levels.end() - upper));
  if (!(deviation > 0)) return y;
  const bool counts_half = upper != levels.end() && *upper == median;
  const double below = static_cast<double>(upper - levels.begin()) + (counts_half ? 0.5 : 0);
  for (double& value : y) {
    if (!(value < median)) continue;
    const auto rank = std::lower_bound(levels.begin(), levels.end(), value) - levels.begin();
    value = median + deviation * NormalQuantile(0.5 * (static_cast<double>(rank) + 0.5) / below);
  }
  return y;
}

VectorXd Apply(WarpKind kind, const VectorXd& scores) {
  switch (kind) {
    case WarpKind::kNone: return scores;
    case WarpKind::kYeoJohnson: return BestYeoJohnson(scores);
    case WarpKind::kHalfRank: return HalfRank(scores);
  }
  return scores;
}

}  // namespace

std::string NameOf(WarpKind kind) {
  switch (kind) {
    case WarpKind::kNone: return "no warp";
    case WarpKind::kYeoJohnson: return "Yeo-Johnson warp";
    case WarpKind::kHalfRank: return "half-rank warp";
  }
  return "";
}

VectorXd Standardize(const VectorXd& values) {
  const double largest = values.cwiseAbs().maxCoeff();
  if (!(largest > 0)) return VectorXd::Zero(values.size());
  VectorXd scaled = values / largest;
  scaled.array() -= scaled.mean();
  const double deviation = std::sqrt(scaled.squaredNorm() / static_cast<double>(scaled.size()));
  // What rounding alone makes of equal values is no difference.
  if (!(deviation > 1e-15)) return VectorXd::Zero(values.size());
  return scaled / deviation;
}

void BoundWorst(std::span<double> scores) {
  constexpr double kFarthest = 1e12, kLeastGain = 1e-6;
  const std::vector<double> levels = Distinct(scores);
  if (levels.size() < 3) return;
  const double best = levels.back(), median = levels[levels.size() / 2];
  // Infinite where it is too large for a double, and then nothing is farther.
  const double gain = std::max(best - median, kLeastGain * std::abs(best));
  const double worst = median - kFarthest * gain;
  for (double& score : scores) score = std::max(score, worst);
}

Warp::Warp(WarpKind kind, const VectorXd& scores) : warped_(Standardize(Apply(kind, scores))) {
  for (Index i = 0; i < scores.size(); ++i) pairs_.emplace_back(warped_[i], scores[i]);
  std::sort(pairs_.begin(), pairs_.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end(), same), pairs_.end());
}

double Warp::Unwarp(double y) const {
  if (pairs_.size() < 2) return pairs_.front().second;
  auto next = std::lower_bound(pairs_.begin(), pairs_.end(), std::pair(y, -HUGE_VAL));
  next = std::clamp(next, pairs_.begin() + 1, pairs_.end() - 1);
  const auto& [y0, f0] = *(next - 1);
  const auto& [y1, f1] = *next;
  return f0 + (y - y0) / (y1 - y0) * (f1 - f0);
}

double Concordance(const VectorXd& scores, const VectorXd& predicted) {
  std::vector<Index> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](Index a, Index b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  constexpr size_t kMinLength = 5;
  const size_t top = std::min(order.size(), std::max(kMinLength, order.size() / 2));
  double right = 0, all = 0;
  for (size_t a = 0; a < top; ++a) {
    const double weight = 1.0 / static_cast<double>(1 + a);
    for (size_t b = a + 1; b < order.size(); ++b) {
      all += weight;
      if (predicted[order[a]] > predicted[order[b]]) right += weight;
    }
  }
  return all > 0 ? right / all : 0;
}

std::vector<int64_t> KeptResults(const std::vector<double>& scores, int64_t most) {
  const auto n = static_cast<int64_t>(scores.size());
  std::vector<int64_t> kept(n);
  std::iota(kept.begin(), kept.end(), 0);
  if (n <= most) return kept;
  const int64_t latest = most / 2, best = most - latest;
  const auto better = [&](int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  std::nth_element(kept.begin(), kept.begin() + best, kept.end() - latest, better);
  kept.erase(kept.begin() + best, kept.end() - latest);
  std::sort(kept.begin(), kept.end());
  return kept;
}

namespace {

void Thin(Results& results, int64_t most) {
  const std::vector<int64_t> kept = KeptResults(results.scores, most);
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

std::vector<double> ScoresOf(const History& history) {
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  std::vector<double> scores(history.size(), kNothing);
  double best = kNothing;  // of those that are whole
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.state != TrialState::kCompleted || !std::isfinite(trial.loss)) continue;
    scores[i] = -trial.loss;
    if (!trial.partial && !trial.outside) best = std::max(best, scores[i]);
  }
  if (best == kNothing) return scores;
  for (int64_t i = 0; i < history.size(); ++i) {
    if (history.trial(i).partial) scores[i] = std::min(scores[i], best);
  }
  return scores;
}

Results Gather(const History& history, int64_t initial, int64_t most) {
  Results results;
  const std::vector<double> scores = ScoresOf(history);
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.outside) continue;
    if (trial.state == TrialState::kActive) {
      results.pending.push_back(history.point(i));
      continue;
    }
    if (i < initial) ++results.initial;
    results.ends.push_back(scores[i]);
    if (!std::isfinite(scores[i])) {
      results.failed.push_back(history.point(i));
      continue;
    }
    results.points.push_back(history.point(i));
    results.scores.push_back(scores[i]);
    results.numbers.push_back(i + 1);
  }
  Thin(results, most);
  BoundWorst(results.scores);
  KeepLatest(results.failed);
  KeepLatest(results.pending);
  return results;
}

}  // namespace shirabe::suggestion::gp
