#include <algorithm>
#include <cmath>
#include <utility>

#include "base/statistics.h"
#include "suggestion/analysis/importance.h"

namespace shirabe::suggestion::analysis {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;

constexpr double kBestShare = 0.1;  // γ'
constexpr Index kMaxSteps = 50;
constexpr double kPriorWeight = 1;
constexpr double kMinSigma = 0.5 / 1.64;  // nine tenths of a kernel in its own step
constexpr double kLeastDensity = 1e-12;

// The steps of an axis. Categories are steps without an order.
class AxisGrid {
 public:
  explicit AxisGrid(const Axis& axis) : axis_(axis), levels_(static_cast<Index>(axis.levels())) {
    const bool few = levels_ > 0 && (axis.categorical() || levels_ <= kMaxSteps);
    size_ = few ? levels_ : kMaxSteps;
  }

  Index size() const { return size_; }
  bool ordered() const { return !axis_.categorical(); }
  Index StepOf(double coordinate) const {
    if (size_ == levels_) return static_cast<Index>(axis_.Level(coordinate));
    // Halfway between two it is the lower one.
    const double place = std::ceil(coordinate * static_cast<double>(size_ - 1) - 0.5);
    return std::clamp<Index>(static_cast<Index>(place), 0, size_ - 1);
  }

 private:
  const Axis& axis_;
  Index levels_, size_;
};

// The order statistics that Scott's rule takes for quartiles, by whole numbers of trials.
double InterquartileRange(const std::vector<Index>& steps, const std::vector<double>& weights) {
  double total = 0;
  for (const double weight : weights) total += weight;
  const double first = std::floor(total / 4), third = std::floor(total * 3 / 4);
  double sum = 0;
  Index low = steps.back(), high = steps.back();
  bool found_low = false, found_high = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    sum += weights[i];
    if (!std::exchange(found_low, found_low || sum >= first) && found_low) low = steps[i];
    if (!std::exchange(found_high, found_high || sum > third) && found_high) high = steps[i];
  }
  return static_cast<double>(high - low);
}

double BandwidthOf(const std::vector<Index>& steps, const std::vector<double>& weights) {
  double total = 0, mean = 0, squares = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    total += weights[i];
    mean += weights[i] * static_cast<double>(steps[i]);
  }
  mean /= total;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double distance = static_cast<double>(steps[i]) - mean;
    squares += weights[i] * distance * distance;
  }
  const double deviation = std::sqrt(squares / std::max(1.0, total - 1));
  const double spread = std::min(InterquartileRange(steps, weights) / 1.34, deviation);
  return std::max(1.059 * spread * std::pow(total, -0.2), kMinSigma);
}

// What a normal distribution, cut off at the ends of the grid, has on each of its steps.
ArrayXd NormalOn(Index size, double centre, double sigma) {
  const auto below = [&](double x) { return NormalCdf((x - centre) / sigma); };
  const double least = below(-0.5), all = below(static_cast<double>(size) - 0.5) - least;
  ArrayXd shares(size);
  double before = least;
  for (Index step = 0; step < size; ++step) {
    const double after = below(static_cast<double>(step) + 0.5);
    shares[step] = (after - before) / all;
    before = after;
  }
  return shares;
}

ArrayXd OrderedDensity(const std::vector<Index>& steps, const std::vector<double>& weights,
                       Index size) {
  const double last = static_cast<double>(size - 1);
  ArrayXd density = kPriorWeight * NormalOn(size, last / 2, last + 1);
  const double sigma = BandwidthOf(steps, weights);
  double total = kPriorWeight;
  for (size_t i = 0; i < steps.size(); ++i) {
    density += weights[i] * NormalOn(size, static_cast<double>(steps[i]), sigma);
    total += weights[i];
  }
  return density / total;
}

// A kernel has 1 for its category, and a share of the prior for every one.
ArrayXd CategoricalDensity(const std::vector<Index>& steps, const std::vector<double>& weights,
                           Index size) {
  const double prior = kPriorWeight / static_cast<double>(steps.size() + 1);
  const double row = 1 + prior * static_cast<double>(size);
  ArrayXd density = ArrayXd::Constant(size, kPriorWeight / static_cast<double>(size));
  double total = kPriorWeight;
  for (size_t i = 0; i < steps.size(); ++i) {
    density += weights[i] * prior / row;
    density[steps[i]] += weights[i] / row;
    total += weights[i];
  }
  return density / total;
}

ArrayXd DensityOf(const AxisGrid& grid, const ArrayXd& counts) {
  std::vector<Index> steps;
  std::vector<double> weights;
  for (Index step = 0; step < counts.size(); ++step) {
    if (counts[step] == 0) continue;
    steps.push_back(step);
    weights.push_back(counts[step]);
  }
  const auto density = grid.ordered() ? OrderedDensity : CategoricalDensity;
  return density(steps, weights, counts.size()) + kLeastDensity;
}

}  // namespace

PedAnova PedAnovaOf(const History& history) {
  std::vector<int64_t> trials;
  std::vector<double> losses;
  for (int64_t i = 0; i < history.size(); ++i) {
    const TrialSummary& trial = history.trial(i);
    if (trial.outside || trial.state != TrialState::kCompleted || !std::isfinite(trial.loss))
      continue;
    trials.push_back(i);
    losses.push_back(trial.loss);
  }
  CHECK(!trials.empty());
  const auto count = static_cast<double>(trials.size());
  std::vector<double> order = losses;
  const auto cutoff = order.begin() + static_cast<int64_t>(std::ceil(kBestShare * count)) - 1;
  std::nth_element(order.begin(), cutoff, order.end());
  PedAnova result;
  for (const double loss : losses) result.best += loss <= *cutoff ? 1 : 0;
  std::vector<std::vector<bool>> active;
  for (const int64_t trial : trials) active.push_back(history.space().Active(history.point(trial)));
  for (int j = 0; j < history.space().size(); ++j) {
    const AxisGrid grid(history.space().axis(j));
    ArrayXd all = ArrayXd::Zero(grid.size()), best = all;
    for (size_t i = 0; i < trials.size(); ++i) {
      if (!active[i][j]) continue;
      const Index step = grid.StepOf(history.coordinate(trials[i], j));
      all[step] += 1;
      if (losses[i] <= *cutoff) best[step] += 1;
    }
    if (all.sum() == 0) {  // it existed in none
      result.importances.push_back(0);
      continue;
    }
    const ArrayXd p = DensityOf(grid, all), p_best = best.sum() > 0 ? DensityOf(grid, best) : p;
    const double share = best.sum() / all.sum();
    const double divergence = grid.size() > 1 ? (p * (p_best / p - 1).square()).sum() : 0;
    result.importances.push_back(share * share * divergence);
  }
  return result;
}

}  // namespace shirabe::suggestion::analysis
