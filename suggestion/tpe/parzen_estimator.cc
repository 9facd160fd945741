#include "suggestion/tpe/parzen_estimator.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/statistics.h"

namespace shirabe::suggestion {
namespace {

using Eigen::ArrayXd;
using Eigen::Index;

constexpr double kNarrowest = 1e-6;  // less is of no use to anyone who tunes

// Z. Beyond 6 deviations on both sides what lies outside is 2·10^-9: nothing.
double MassInside(double centre, double sigma) {
  constexpr double kFar = 6;
  double mass = 1;
  if (1 - centre < kFar * sigma) mass -= NormalCdf((centre - 1) / sigma);
  if (centre < kFar * sigma) mass -= NormalCdf(-centre / sigma);
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

// log ∫ φ((x-μ)/σ)/σ over the share. One far narrower than the kernel has the mass of its middle;
// the difference of two Φ would cancel there.
double LogMass(Share share, double centre, double sigma) {
  constexpr double kNarrowShare = 0.05;  // the error of the middle is (width / σ)² / 24 of the mass
  const double width = share.to - share.from;
  if (width < kNarrowShare * sigma) {
    const double z = ((share.from + share.to) / 2 - centre) / sigma;
    return std::log(width / (sigma * std::sqrt(2 * std::numbers::pi))) - z * z / 2;
  }
  // Towards the lower tail, where erfc keeps its precision.
  const double a = (share.from - centre) / sigma, b = (share.to - centre) / sigma;
  return std::log(a > 0 ? NormalCdf(-a) - NormalCdf(-b) : NormalCdf(b) - NormalCdf(a));
}

std::vector<double> DistinctValues(const ArrayXd& x) {
  std::vector<double> values(x.begin(), x.end());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// The indices of the coordinates in ascending order. By buckets of the unit interval first:
// about one value lies in each where they are spread. Sorting all of them at once took a seventh of
// a suggestion's time.
std::vector<Index> Ascending(const ArrayXd& x) {
  const Index n = x.size();
  const auto bucket = [n](double value) {
    return std::min(n - 1, static_cast<Index>(value * static_cast<double>(n)));
  };
  std::vector<Index> ends(n);
  for (const double value : x) ++ends[bucket(value)];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  std::vector<Index> next = ends;
  std::vector<std::pair<double, Index>> sorted(n);
  for (Index i = 0; i < n; ++i) sorted[--next[bucket(x[i])]] = {x[i], i};
  for (Index b = 0; b < n; ++b) std::sort(sorted.begin() + next[b], sorted.begin() + ends[b]);
  std::vector<Index> order;
  order.reserve(n);
  for (const auto& [value, i] : sorted) order.push_back(i);
  return order;
}

// For each of `x`, of which `order` is the ascending one, the wider of the gaps to the next value
// on either side, at the ends the only one. Where all are equal, there is no next one: the share of
// one of n.
ArrayXd Gaps(const ArrayXd& x, const std::vector<Index>& order) {
  const Index n = x.size();
  if (x[order.front()] == x[order.back()]) {
    return ArrayXd::Constant(n, 1 / static_cast<double>(n));
  }
  ArrayXd gaps(n);
  double left = 0;
  for (Index i = 0, next = 0; i < n; i = next) {
    const double value = x[order[i]];
    while (next < n && x[order[next]] == value) ++next;
    const double right = next < n ? x[order[next]] - value : 0;
    for (Index k = i; k < next; ++k) gaps[order[k]] = std::max(left, right);
    left = right;
  }
  return gaps;
}

// How many kernels are at each place; one each where `place` is empty.
ArrayXd Counts(const std::vector<Index>& place, Index places) {
  if (place.empty()) return ArrayXd::Ones(places);
  ArrayXd counts = ArrayXd::Zero(places);
  for (Index i : place) counts[i] += 1;
  return counts;
}

struct Scott {
  double prior = 0;  // share of the prior kernel
  double axes = 1;
};

// The deviation is that of the centres with that of the prior kernel, a uniform distribution's, in
// their middle: few kernels, or kernels all in one place, say little about how far the next good
// point may be.
double ScottWidth(const ArrayXd& x, const ArrayXd& shares, const Scott& scott) {
  const double sum = shares.sum();
  if (!(sum > 0)) return 1;
  const double mean = (shares * x).sum() / sum;
  const double variance = (shares * (x - mean).square()).sum() + scott.prior / 12;
  const double effective = sum * sum / shares.square().sum();  // equal weights (Kish 1965)
  return std::sqrt(variance) * std::pow(effective, -1 / (scott.axes + 4));
}

// The logarithm of a sum of exponentials, the greatest of which is taken out first, so that single
// precision does for the rest: twice as fast, and off by less than 10^-6, which no choice between
// points depends on.
double LogSum(const Eigen::Ref<const ArrayXd>& terms, double prior) {
  const double most = terms.size() == 0 ? prior : std::max(prior, terms.maxCoeff());
  Eigen::ArrayXf ratios = (terms - most).cast<float>();
  return most + std::log(std::exp(prior - most) + static_cast<double>(ratios.exp().sum()));
}

}  // namespace

// log k of every place for the levels that occur in the points asked about: few, and the same for
// many points.
class ParzenEstimator::Tables {
 public:
  struct Row {
    ArrayXd log_mass;  // a place each
    double log_width = 0;
  };

  Tables(const ParzenEstimator& parzen, const std::vector<Point>& points)
      : rows_(parzen.columns_.size()) {
    for (size_t j = 0; j < rows_.size(); ++j) {
      const Column& column = parzen.columns_[j];
      if (column.kind != Column::Kind::kLevels) continue;
      const Axis& axis = parzen.space_.axis(column.axis);
      for (const Point& point : points) {
        const uint64_t level = axis.Level(point[column.axis]);
        auto [entry, added] = rows_[j].try_emplace(level);
        if (added) entry->second = MakeRow(column, ShareOf(axis, level));
      }
    }
  }

  const Row& At(size_t j, uint64_t level) const { return rows_[j].find(level)->second; }

 private:
  static Row MakeRow(const Column& column, Share share) {
    Row row{.log_mass = -column.log_inside, .log_width = std::log(share.to - share.from)};
    for (Index i = 0; i < column.centre.size(); ++i) {
      row.log_mass[i] += LogMass(share, column.centre[i], column.sigma[i]);
    }
    return row;
  }

  std::vector<absl::flat_hash_map<uint64_t, Row>> rows_;
};

ParzenEstimator::ParzenEstimator(const Space& space, const std::vector<int>& axes, Kernels kernels,
                                 const Options& options)
    : space_(space) {
  const Index n = kernels.centres.rows();
  CHECK(kernels.centres.cols() == static_cast<Index>(axes.size()) && options.prior_weight > 0);
  if (kernels.weights.size() == 0) kernels.weights = ArrayXd::Ones(n);
  CHECK(kernels.weights.size() == n);
  const double sum = kernels.weights.sum();
  const double prior = sum > 0 ? options.prior_weight * sum / static_cast<double>(n) : 1;
  prior_ = prior / (sum + prior);
  shares_ = kernels.weights / (sum + prior);
  cumulated_ = shares_;
  std::partial_sum(shares_.begin(), shares_.end(), cumulated_.begin());
  bias_ = shares_.log();
  columns_.resize(axes.size());
  for (size_t j = 0; j < axes.size(); ++j) {
    columns_[j].axis = axes[j];
    Locate(columns_[j], kernels.centres.col(static_cast<Index>(j)));
    if (columns_[j].kind == Column::Kind::kCategories) {
      Smooth(columns_[j]);
    } else if (n > 0) {
      Widen(columns_[j], kernels.centres.col(static_cast<Index>(j)), options);
    }
  }
}

void ParzenEstimator::Locate(Column& column, const ArrayXd& x) const {
  const Axis& axis = space_.axis(column.axis);
  if (axis.categorical()) {
    column.kind = Column::Kind::kCategories;
  } else if (!axis.continuous() && static_cast<double>(axis.levels()) < 1 / kNarrowest) {
    column.kind = Column::Kind::kLevels;
  }
  if (column.kind == Column::Kind::kReal) {
    column.centre = x;
    return;
  }
  const std::vector<double> values = DistinctValues(x);
  column.centre = Eigen::Map<const ArrayXd>(values.data(), static_cast<Index>(values.size()));
  column.place.reserve(x.size());
  for (const double value : x) {
    column.place.push_back(std::lower_bound(values.begin(), values.end(), value) - values.begin());
  }
}

// λ such that a category never seen has the probability that the prior gives it.
void ParzenEstimator::Smooth(Column& column) const {
  const auto categories = static_cast<double>(space_.axis(column.axis).levels());
  column.log_other = std::log(prior_ / (1 + categories * prior_));
  column.log_same = std::log((1 + prior_) / (1 + categories * prior_));
}

void ParzenEstimator::Widen(Column& column, const ArrayXd& x, const Options& options) {
  std::vector<Index> order;  // of the centres; kGaps
  if (options.bandwidth == Bandwidth::kGaps) {
    order = Ascending(column.centre);
    column.sigma = Gaps(column.centre, order) / Counts(column.place, column.centre.size());
  } else {
    const Scott scott{.prior = prior_, .axes = static_cast<double>(columns_.size())};
    column.sigma =
        ArrayXd::Constant(column.centre.size(), options.scale * ScottWidth(x, shares_, scott));
  }
  // A kernel narrower than a level would hardly reach the next one.
  const Axis& axis = space_.axis(column.axis);
  const double level = axis.continuous() ? 0 : 0.5 / static_cast<double>(axis.levels());
  const double least = std::clamp(options.min_bandwidth, std::max(kNarrowest, level), 1.0);
  column.sigma = column.sigma.max(least).min(1.0);
  column.root_precision = 1 / (column.sigma * std::numbers::sqrt2);
  column.log_inside = column.centre.binaryExpr(column.sigma, &MassInside).log();
  if (column.kind != Column::Kind::kReal) return;
  bias_ -= column.log_inside + (column.sigma * std::sqrt(2 * std::numbers::pi)).log();
  if (columns_.size() == 1 && !order.empty()) Arrange(column, std::move(order), least);
}

// With Z ≥ 1/3, what is beyond z deviations adds at most 3 exp(-z²/2) / (σ √2π) in all.
void ParzenEstimator::Arrange(const Column& column, std::vector<Index> order, double least) {
  constexpr double kWide = 2;
  const auto middle = std::stable_partition(
      order.begin(), order.end(), [&](Index i) { return column.sigma[i] > kWide * least; });
  double widest = 0;  // of the others
  for (auto i = middle; i != order.end(); ++i) widest = std::max(widest, column.sigma[*i]);
  nearby_.wide = middle - order.begin();
  nearby_.reach = widest * std::sqrt(2 * (17 - std::log(prior_ * least)));
  nearby_.centre = column.centre(order);
  nearby_.root_precision = column.root_precision(order);
  nearby_.bias = bias_(order);
}

double ParzenEstimator::bandwidth(Index i, int j) const {
  const Column& column = columns_[j];
  return column.sigma.size() == 0 ? 0 : column.sigma[column.PlaceOf(i)];
}

void ParzenEstimator::Sample(Rng& rng, Point& point) const {
  const auto chosen = std::upper_bound(cumulated_.begin(), cumulated_.end(), rng.Uniform());
  for (const Column& column : columns_) {
    point[column.axis] = chosen == cumulated_.end()
                             ? SamplePrior(column, rng)
                             : SampleAxis(column, chosen - cumulated_.begin(), rng);
  }
}

double ParzenEstimator::SamplePrior(const Column& column, Rng& rng) const {
  const Axis& axis = space_.axis(column.axis);
  if (axis.categorical()) return static_cast<double>(rng.Below(axis.levels()));
  const double x = rng.Uniform();
  return axis.continuous() ? x : axis.Canonical(x);
}

double ParzenEstimator::SampleAxis(const Column& column, Index kernel, Rng& rng) const {
  const Axis& axis = space_.axis(column.axis);
  const double centre = column.centre[column.PlaceOf(kernel)];
  if (column.kind == Column::Kind::kCategories) {
    // λ of the mass is spread evenly over all categories, this one included.
    const double smoothed = std::exp(column.log_other) * static_cast<double>(axis.levels());
    return rng.Uniform() < smoothed ? SamplePrior(column, rng) : centre;
  }
  // At least a third of a normal distribution lies within: its centre does, and σ ≤ 1.
  for (;;) {
    const double x = centre + column.sigma[column.PlaceOf(kernel)] * Normal(rng);
    if (x >= 0 && x <= 1) return axis.continuous() ? x : axis.Canonical(x);
  }
}

ArrayXd ParzenEstimator::LogDensity(const std::vector<Point>& points) const {
  const Tables tables(*this, points);
  ArrayXd terms(bias_.size());
  ArrayXd densities(static_cast<Index>(points.size()));
  for (size_t i = 0; i < points.size(); ++i) {
    densities[static_cast<Index>(i)] = nearby_.centre.size() > 0
                                           ? LogarithmNear(points[i][columns_[0].axis], terms)
                                           : Logarithm(points[i], tables, terms);
  }
  return densities;
}

// `terms` is room for n numbers, here as in the next.
double ParzenEstimator::LogarithmNear(double x, ArrayXd& terms) const {
  const Index wide = nearby_.wide;
  const double* const centres = nearby_.centre.data();
  const double* const end = centres + nearby_.centre.size();
  const Index first = std::lower_bound(centres + wide, end, x - nearby_.reach) - centres;
  const Index count = std::upper_bound(centres + first, end, x + nearby_.reach) - centres - first;
  const auto fill = [&](Index to, Index from, Index n) {
    terms.segment(to, n) =
        nearby_.bias.segment(from, n) -
        ((x - nearby_.centre.segment(from, n)) * nearby_.root_precision.segment(from, n)).square();
  };
  fill(0, 0, wide);
  fill(wide, first, count);
  return LogSum(terms.head(wide + count), std::log(prior_));
}

double ParzenEstimator::Logarithm(const Point& point, const Tables& tables, ArrayXd& terms) const {
  double prior = std::log(prior_);
  terms = bias_;
  for (size_t j = 0; j < columns_.size(); ++j) {
    const Column& column = columns_[j];
    const Axis& axis = space_.axis(column.axis);
    const double x = point[column.axis];
    if (column.kind == Column::Kind::kReal) {
      terms -= ((x - column.centre) * column.root_precision).square();
      continue;
    }
    ArrayXd of_place;
    if (column.kind == Column::Kind::kLevels) {
      const Tables::Row& row = tables.At(j, axis.Level(x));
      of_place = row.log_mass;
      prior += row.log_width;
    } else {
      const ArrayXd other = ArrayXd::Constant(column.centre.size(), column.log_other);
      of_place = (column.centre == x).select(column.log_same, other);
      prior -= std::log(static_cast<double>(axis.levels()));
    }
    for (Index i = 0; i < terms.size(); ++i) terms[i] += of_place[column.place[i]];
  }
  return LogSum(terms, prior);
}

}  // namespace shirabe::suggestion
