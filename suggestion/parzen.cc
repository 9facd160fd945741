#include "suggestion/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace shirabe::suggestion {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;

constexpr double kNarrowest = 1e-6;  // less is of no use to anyone who tunes

// So many levels that none of them is wider than the narrowest kernel: as good as continuous.
bool IsReal(const Axis& axis) {
  return axis.continuous() || (!axis.categorical() && axis.levels() > 1 / kNarrowest);
}

double Phi(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

// Beyond 6 deviations on both sides what lies outside is 2·10^-9: Z is 1.
double MassInside(double centre, double sigma) {
  constexpr double kFar = 6;
  double mass = 1;
  if (1 - centre < kFar * sigma) mass -= Phi((centre - 1) / sigma);
  if (centre < kFar * sigma) mass -= Phi(-centre / sigma);
  return mass;
}

// By the polar method (Marsaglia & Bray 1964), one of the two.
double Normal(Rng& rng) {
  for (;;) {
    const double u = 2 * rng.Uniform() - 1, v = 2 * rng.Uniform() - 1;
    const double square = u * u + v * v;
    if (square < 1 && square > 0) return u * std::sqrt(-2 * std::log(square) / square);
  }
}

struct Share {
  double from = 0;
  double to = 1;
};

// The part of the unit interval that decodes to `level`. Shares meet half-way between the middles
// of neighbours: exactly so where they are equal, nearly so where a distribution shapes them.
Share ShareOf(const Axis& axis, uint64_t level) {
  const double middle = axis.Coordinate(level);
  Share share;
  if (level > 0) share.from = (axis.Coordinate(level - 1) + middle) / 2;
  if (level + 1 < axis.levels()) share.to = (middle + axis.Coordinate(level + 1)) / 2;
  return share;
}

std::vector<Index> Ascending(const ArrayXd& x) {
  std::vector<Index> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&x](Index a, Index b) { return x[a] < x[b]; });
  return order;
}

// The wider of the gaps to the neighbours on either side; at the ends to the only one.
ArrayXd Gaps(const ArrayXd& x) {
  const Index n = x.size();
  if (n == 1) return ArrayXd::Ones(1);
  const std::vector<Index> order = Ascending(x);
  ArrayXd gaps(n);
  for (Index i = 0; i < n; ++i) {
    const double left = i > 0 ? x[order[i]] - x[order[i - 1]] : 0;
    const double right = i + 1 < n ? x[order[i + 1]] - x[order[i]] : 0;
    gaps[order[i]] = std::max(left, right);
  }
  return gaps;
}

double ScottWidth(const ArrayXd& x, const ArrayXd& weights, size_t axes) {
  if (!(weights.sum() > 0)) return 1;
  const ArrayXd shares = weights / weights.sum();
  const double mean = (shares * x).sum();
  const double deviation = std::sqrt((shares * (x - mean).square()).sum());
  const double effective = 1 / shares.square().sum();  // as many equal weights (Kish 1965)
  return deviation * std::pow(effective, -1 / (static_cast<double>(axes) + 4));
}

}  // namespace

// log k of every kernel for the levels that occur in the points asked about: few, and the same for
// many points.
class Parzen::Tables {
 public:
  Tables(const Parzen& parzen, const std::vector<Point>& points) : of_(parzen.columns_.size()) {
    for (size_t j = 0; j < of_.size(); ++j) {
      const Axis& axis = parzen.space_.axis(parzen.columns_[j].axis);
      if (IsReal(axis) || axis.categorical()) continue;
      for (const Point& point : points) {
        const uint64_t level = axis.Level(point[parzen.columns_[j].axis]);
        auto [entry, added] = of_[j].try_emplace(level);
        if (added) entry->second = Row(parzen.columns_[j], ShareOf(axis, level));
      }
    }
  }

  struct Entry {
    ArrayXd log_mass;  // n
    double log_width = 0;
  };
  const Entry& At(size_t j, uint64_t level) const { return of_[j].find(level)->second; }

 private:
  // A share far narrower than the kernel has the mass of its middle; the difference of two Φ would
  // cancel there.
  static Entry Row(const Column& column, Share share) {
    constexpr double kNarrow = 0.05;  // the error of the middle is (width / σ)² / 24 of the mass
    const double width = share.to - share.from, middle = (share.from + share.to) / 2;
    Entry entry{.log_mass = ArrayXd(column.centre.size()), .log_width = std::log(width)};
    for (Index i = 0; i < column.centre.size(); ++i) {
      const double mu = column.centre[i], sigma = column.sigma[i];
      if (width < kNarrow * sigma) {
        const double z = (middle - mu) / sigma;
        entry.log_mass[i] =
            entry.log_width - z * z / 2 - std::log(sigma * std::sqrt(2 * std::numbers::pi));
      } else {
        // Towards the lower tail, where erfc keeps its precision.
        const double a = (share.from - mu) / sigma, b = (share.to - mu) / sigma;
        entry.log_mass[i] = std::log(a > 0 ? Phi(-a) - Phi(-b) : Phi(b) - Phi(a));
      }
      entry.log_mass[i] -= std::log(MassInside(mu, sigma));
    }
    return entry;
  }

  std::vector<absl::flat_hash_map<uint64_t, Entry>> of_;
};

Parzen::Parzen(const Space& space, std::vector<int> axes, Kernels kernels, const Options& options)
    : space_(space) {
  const Index n = kernels.centres.rows();
  CHECK(kernels.centres.cols() == static_cast<Index>(axes.size()) && options.prior_weight > 0);
  if (kernels.weights.size() == 0) kernels.weights = ArrayXd::Ones(n);
  CHECK(kernels.weights.size() == n);
  const double sum = kernels.weights.sum();
  const double prior = sum > 0 ? options.prior_weight * sum / static_cast<double>(n) : 1;
  log_prior_ = std::log(prior / (sum + prior));
  bias_ = (kernels.weights / (sum + prior)).log();
  cumulated_ = kernels.weights / (sum + prior);
  std::partial_sum(cumulated_.begin(), cumulated_.end(), cumulated_.begin());
  for (size_t j = 0; j < axes.size(); ++j) {
    columns_.push_back({.axis = axes[j], .centre = kernels.centres.col(static_cast<Index>(j))});
  }
  for (Column& column : columns_) {
    if (space_.axis(column.axis).categorical()) {
      Smooth(column, prior / (sum + prior));
    } else {
      Widen(column, kernels.weights, options);
    }
  }
}

// λ such that a category never seen has the probability that the prior gives it.
void Parzen::Smooth(Column& column, double prior) {
  const auto categories = static_cast<double>(space_.axis(column.axis).levels());
  column.log_uniform = -std::log(categories);
  column.log_other = std::log(prior / (1 + categories * prior));
  column.log_same = std::log((1 + prior) / (1 + categories * prior));
}

void Parzen::Widen(Column& column, const ArrayXd& weights, const Options& options) {
  const Axis& axis = space_.axis(column.axis);
  const Index n = column.centre.size();
  if (n == 0) return;
  if (options.bandwidth == Bandwidth::kGaps) {
    column.sigma = Gaps(column.centre);
  } else {
    column.sigma = ArrayXd::Constant(n, ScottWidth(column.centre, weights, columns_.size()));
  }
  // A kernel narrower than a level would hardly reach the next one.
  const double level = axis.continuous() ? 0 : 0.5 / static_cast<double>(axis.levels());
  const double least = std::clamp(options.min_bandwidth, std::max(kNarrowest, level), 1.0);
  column.sigma = column.sigma.max(least).min(1.0);
  if (!IsReal(axis)) return;
  column.root_precision = 1 / (column.sigma * std::numbers::sqrt2);
  for (Index i = 0; i < n; ++i) {
    const double inside = MassInside(column.centre[i], column.sigma[i]);
    bias_[i] -= std::log(inside * column.sigma[i] * std::sqrt(2 * std::numbers::pi));
  }
}

void Parzen::Sample(Rng& rng, Point& point) const {
  const double u = rng.Uniform();
  const Index n = cumulated_.size();
  const Index kernel = std::upper_bound(cumulated_.begin(), cumulated_.end(), u) -
                       cumulated_.begin();  // n: the prior
  for (const Column& column : columns_) {
    point[column.axis] = kernel == n ? SamplePrior(column, rng) : SampleAxis(column, kernel, rng);
  }
}

double Parzen::SamplePrior(const Column& column, Rng& rng) const {
  const Axis& axis = space_.axis(column.axis);
  if (axis.categorical()) return static_cast<double>(rng.Below(axis.levels()));
  const double x = rng.Uniform();
  return axis.continuous() ? x : axis.Canonical(x);
}

double Parzen::SampleAxis(const Column& column, Index kernel, Rng& rng) const {
  const Axis& axis = space_.axis(column.axis);
  const double centre = column.centre[kernel];
  if (axis.categorical()) {
    // λ of the mass is spread evenly over all categories, this one included.
    const double smoothed = std::exp(column.log_other - column.log_uniform);
    return rng.Uniform() < smoothed ? SamplePrior(column, rng) : centre;
  }
  // At least a third of a normal distribution lies within: its centre does, and σ ≤ 1.
  for (;;) {
    const double x = centre + column.sigma[kernel] * Normal(rng);
    if (x >= 0 && x <= 1) return axis.continuous() ? x : axis.Canonical(x);
  }
}

ArrayXd Parzen::LogDensity(const std::vector<Point>& points) const {
  const Tables tables(*this, points);
  ArrayXd terms(bias_.size());
  ArrayXd densities(static_cast<Index>(points.size()));
  for (size_t i = 0; i < points.size(); ++i) {
    densities[static_cast<Index>(i)] = Logarithm(points[i], tables, terms);
  }
  return densities;
}

// The logarithm of a sum of exponentials, the greatest of which is taken out first. `terms` is
// room for n numbers.
double Parzen::Logarithm(const Point& point, const Tables& tables, ArrayXd& terms) const {
  double prior = log_prior_;
  terms = bias_;
  for (size_t j = 0; j < columns_.size(); ++j) {
    const Column& column = columns_[j];
    const Axis& axis = space_.axis(column.axis);
    const double x = point[column.axis];
    if (IsReal(axis)) {
      terms -= ((x - column.centre) * column.root_precision).square();
    } else if (axis.categorical()) {
      terms += (column.centre == x)
                   .select(ArrayXd::Constant(terms.size(), column.log_same), column.log_other);
      prior += column.log_uniform;
    } else {
      const Tables::Entry& entry = tables.At(j, axis.Level(x));
      terms += entry.log_mass;
      prior += entry.log_width;
    }
  }
  const double most = terms.size() == 0 ? prior : std::max(prior, terms.maxCoeff());
  return most + std::log(std::exp(prior - most) + (terms - most).exp().sum());
}

}  // namespace shirabe::suggestion
