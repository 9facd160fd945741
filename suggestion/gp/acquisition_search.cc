#include "suggestion/gp/acquisition_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/cancellation.h"
#include "base/sorting.h"
#include "suggestion/sobol_sequence.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Points of the pool; fewer where each costs more, so that the cost grows with n and not with n².
constexpr Index kPool = 2048, kMinPool = 512, kAffordable = 250;
constexpr int kStarts = 10;
constexpr int kClimbIterations = 60;
constexpr double kClimbTolerance = 1e-3;
constexpr int kRounds = 4;             // of neighbours and climbing
constexpr double kChangedAtOnce = 20;  // coordinates that a perturbation changes on average, most
constexpr uint64_t kCategoriesTried = 32;
// Ordered coordinates with more levels than this climb as if they were continuous.
constexpr uint64_t kClimbable = 8;

// A deviation for perturbations, between 0.3 and 0.001 of the range: near and far alike.
double DrawDeviation(Rng& rng) { return std::pow(10, -0.5 - 2.5 * rng.Uniform()); }

double OtherCategory(double category, uint64_t categories, Rng& rng) {
  if (categories < 2) return category;
  const auto other = static_cast<double>(rng.Below(categories - 1));
  return other < category ? other : other + 1;
}

void Copy(const Inputs& from, Index row, Inputs& to, Index at) {
  to.x.row(at) = from.x.row(row);
  to.u.row(at) = from.u.row(row);
}

}  // namespace

AcquisitionSearch::AcquisitionSearch(const InputLayout& layout, const Acquisition& acquisition,
                                     const Region& region, Rng rng)
    : layout_(layout),
      acquisition_(acquisition),
      region_(region),
      rng_(rng),
      lengths_(acquisition.Lengths().max(1e-3).min(10)) {}

std::vector<Ranked> AcquisitionSearch::Run(bool climb) {
  const Cardinality all = layout_.space().cardinality();
  const bool few = all.finite && all.count <= kEnumerable;
  const Inputs pool = few ? All() : Pool();
  VectorXd pool_values = acquisition_.EvaluateAll(pool);
  layout_.Exclude(pool, pool_values);
  std::vector<Ranked> ranked;
  if (climb && !few) {
    Inputs starts = ChooseStarts(pool, pool_values);
    Climb(starts);
    layout_.Round(starts);
    VectorXd values = acquisition_.Evaluate(starts);
    layout_.Exclude(starts, values);
    for (int i = 0; i < kRounds && layout_.discrete(); ++i) {
      if (!StepToNeighbours(starts, values)) break;
    }
    Append(starts, values, ranked);
  }
  Append(pool, pool_values, ranked);
  StableSort(ranked, [](const Ranked& a, const Ranked& b) { return a.value > b.value; });
  return ranked;
}

Inputs AcquisitionSearch::All() const {
  const uint64_t count = layout_.space().cardinality().count;
  Inputs points = layout_.Empty(static_cast<Index>(count));
  for (uint64_t i = 0; i < count; ++i) {
    layout_.Set(points, static_cast<Index>(i), layout_.space().At(i));
  }
  return points;
}

Inputs AcquisitionSearch::Pool() {
  const Index n = std::max<Index>(1, acquisition_.size());
  const Index count = std::clamp(kPool * kAffordable / n, kMinPool, kPool);
  Inputs pool = layout_.Empty(count);
  Spread(pool, 0, count / 2);
  for (Index i = count / 2; i < count; ++i) Perturb(pool, i);
  for (Index i = 0; i < count; ++i) layout_.PullBack(region_.incumbent, pool, i);
  layout_.Round(pool);
  return pool;
}

void AcquisitionSearch::Spread(Inputs& pool, Index begin, Index count) {
  const int p = pool.numeric(), c = pool.categorical();
  const SobolSequence sequence(std::min(p + c, SobolSequence::kMaxDimensions));
  const uint64_t seed = rng_.Next();
  const VectorXd width = region_.box.upper - region_.box.lower;
  for (Index i = 0; i < count; ++i) {
    std::vector<double> unit = sequence.At(static_cast<uint64_t>(i), seed);
    while (static_cast<int>(unit.size()) < p + c) unit.push_back(rng_.Uniform());
    for (int j = 0; j < p; ++j) {
      pool.x(begin + i, j) = region_.box.lower[j] + width[j] * unit[j];
    }
    for (int j = 0; j < c; ++j) {
      const auto categories = static_cast<double>(layout_.categorical_axis(j).levels());
      pool.u(begin + i, j) = std::floor(unit[p + j] * categories);
    }
  }
}

void AcquisitionSearch::Perturb(Inputs& pool, Index row) {
  const int p = pool.numeric(), c = pool.categorical();
  Copy(region_.incumbent, 0, pool, row);
  const double share = std::min(1.0, kChangedAtOnce / (p + c));
  const double deviation = DrawDeviation(rng_);
  bool changed = false;
  for (int j = 0; j < p; ++j) {
    if (rng_.Uniform() >= share) continue;
    changed = true;
    const double x = pool.x(row, j) + deviation * rng_.Normal();
    pool.x(row, j) = std::clamp(x, region_.box.lower[j], region_.box.upper[j]);
  }
  // One category in a point on average, so that the others keep what is known to be good.
  for (int j = 0; j < c; ++j) {
    if (rng_.Uniform() * c >= 1) continue;
    changed = true;
    pool.u(row, j) = OtherCategory(pool.u(row, j), layout_.categorical_axis(j).levels(), rng_);
  }
  if (changed || p == 0) return;
  const auto j = static_cast<Index>(rng_.Below(p));
  const double low = region_.box.lower[j];
  pool.x(row, j) = low + (region_.box.upper[j] - low) * rng_.Uniform();
}

// The best, then others by lot in proportion to the utility, and the incumbent.
Inputs AcquisitionSearch::ChooseStarts(const Inputs& pool, const VectorXd& values) {
  std::vector<Index> chosen(1);
  VectorXd weights = (values.array() - values.maxCoeff(&chosen[0])).exp();
  weights[chosen[0]] = 0;
  while (static_cast<int>(chosen.size()) < kStarts - 1) {
    double left = weights.sum() * rng_.Uniform();
    Index pick = -1;
    for (Index i = 0; i < weights.size() && left >= 0; ++i) {
      if (weights[i] <= 0) continue;
      pick = i;
      left -= weights[i];
    }
    if (pick < 0) break;
    weights[pick] = 0;
    chosen.push_back(pick);
  }
  Inputs starts = layout_.Empty(static_cast<Index>(chosen.size()) + 1);
  for (size_t i = 0; i < chosen.size(); ++i) {
    Copy(pool, chosen[i], starts, static_cast<Index>(i));
  }
  Copy(region_.incumbent, 0, starts, static_cast<Index>(chosen.size()));
  return starts;
}

// Every point by itself, all of them evaluated together.
void AcquisitionSearch::Climb(Inputs& points) const {
  const int p = points.numeric();
  if (p == 0) return;
  Box box{region_.box.lower.cwiseQuotient(lengths_), region_.box.upper.cwiseQuotient(lengths_)};
  std::vector<Lbfgs> climbers;
  for (Index i = 0; i < points.rows(); ++i) {
    const VectorXd start = points.x.row(i).transpose().cwiseQuotient(lengths_);
    Box own = box;
    for (int j = 0; j < p; ++j) {
      const uint64_t levels = layout_.numeric_axis(j).levels();
      if (levels > 0 && levels <= kClimbable) own.lower[j] = own.upper[j] = start[j];
    }
    climbers.emplace_back(
        start, std::move(own),
        Lbfgs::Options{.max_iterations = kClimbIterations, .gradient_tolerance = kClimbTolerance});
  }
  std::vector<Index> active(climbers.size());
  std::iota(active.begin(), active.end(), 0);
  const auto finished = [&](Index i) { return climbers[i].done(); };
  while (!active.empty() && !IsCancelled()) {
    Inputs batch = layout_.Empty(static_cast<Index>(active.size()));
    for (size_t k = 0; k < active.size(); ++k) {
      Copy(points, active[k], batch, static_cast<Index>(k));
      batch.x.row(static_cast<Index>(k)) =
          climbers[active[k]].next().cwiseProduct(lengths_).transpose();
    }
    MatrixXd gradient;
    const VectorXd values = acquisition_.Evaluate(batch, &gradient);
    for (size_t k = 0; k < active.size(); ++k) {
      const auto row = static_cast<Index>(k);
      climbers[active[k]].Tell(-values[row], -gradient.row(row).transpose().cwiseProduct(lengths_));
    }
    active.erase(std::remove_if(active.begin(), active.end(), finished), active.end());
  }
  for (Index i = 0; i < points.rows(); ++i) {
    const Inputs start = points.Row(i);
    const VectorXd x = climbers[i].x().cwiseProduct(lengths_);
    points.x.row(i) = region_.box.Clamp(x).transpose();
    layout_.PullBack(start, points, i);
  }
}

// All points that differ from it in one coordinate that is not continuous: by one level up or down,
// or by the category.
Inputs AcquisitionSearch::Neighbours(const Inputs& point) {
  std::vector<Point> neighbours;
  const Point here = layout_.ToPoint(point, 0);
  const auto add = [&](int axis, double coordinate) {
    Point there = here;
    there[axis] = coordinate;
    layout_.space().Neutralize(there);
    if (layout_.space().Allows(there)) neighbours.push_back(std::move(there));
  };
  for (const int i : layout_.numeric()) {
    const Axis& axis = layout_.space().axis(i);
    if (axis.continuous()) continue;
    const uint64_t level = axis.Level(here[i]);
    if (level > 0) add(i, axis.Coordinate(level - 1));
    if (level + 1 < axis.levels()) add(i, axis.Coordinate(level + 1));
  }
  for (const int i : layout_.categorical()) {
    const uint64_t categories = layout_.space().axis(i).levels();
    const bool all = categories <= kCategoriesTried;
    for (uint64_t k = 0; k < std::min(categories, kCategoriesTried); ++k) {
      const auto category = static_cast<double>(all ? k : rng_.Below(categories));
      if (category != here[i]) add(i, category);
    }
  }
  return layout_.From(neighbours);
}

bool AcquisitionSearch::StepToNeighbours(Inputs& points, VectorXd& values) {
  bool improved = false;
  for (Index i = 0; i < points.rows(); ++i) {
    const Inputs neighbours = Neighbours(points.Row(i));
    if (neighbours.rows() == 0) continue;
    Index best = 0;
    if (acquisition_.Evaluate(neighbours).maxCoeff(&best) <= values[i]) continue;
    Copy(neighbours, best, points, i);
    improved = true;
  }
  if (!improved) return false;
  Inputs climbed = points;
  Climb(climbed);
  layout_.Round(climbed);
  VectorXd before = acquisition_.Evaluate(points), after = acquisition_.Evaluate(climbed);
  layout_.Exclude(points, before);
  layout_.Exclude(climbed, after);
  for (Index i = 0; i < points.rows(); ++i) {
    if (after[i] > before[i]) Copy(climbed, i, points, i);
    values[i] = std::max(before[i], after[i]);
  }
  return true;
}

void AcquisitionSearch::Append(const Inputs& points, const VectorXd& values,
                               std::vector<Ranked>& ranked) const {
  for (Index i = 0; i < points.rows(); ++i) {
    ranked.push_back({layout_.ToPoint(points, i), values[i]});
  }
}

InputLayout::InputLayout(const Space& space) : space_(space) {
  for (int i = 0; i < space.size(); ++i) {
    (space.axis(i).categorical() ? categorical_ : numeric_).push_back(i);
    discrete_ = discrete_ || !space.axis(i).continuous();
  }
  discrete_ = discrete_ || space.has_rules();  // which make steps of other parameters
}

Inputs InputLayout::Empty(Eigen::Index rows) const {
  return {Eigen::MatrixXd(rows, numeric_.size()), Eigen::MatrixXd(rows, categorical_.size())};
}

void InputLayout::Set(Inputs& inputs, Eigen::Index row, const Point& point) const {
  for (int j = 0; j < inputs.numeric(); ++j) inputs.x(row, j) = point[numeric_[j]];
  for (int j = 0; j < inputs.categorical(); ++j) inputs.u(row, j) = point[categorical_[j]];
}

Inputs InputLayout::From(const std::vector<Point>& points) const {
  Inputs inputs = Empty(static_cast<Eigen::Index>(points.size()));
  for (size_t i = 0; i < points.size(); ++i) Set(inputs, static_cast<Eigen::Index>(i), points[i]);
  return inputs;
}

Point InputLayout::ToPoint(const Inputs& inputs, Eigen::Index row) const {
  Point point(space_.size());
  for (int j = 0; j < inputs.numeric(); ++j) point[numeric_[j]] = inputs.x(row, j);
  for (int j = 0; j < inputs.categorical(); ++j) point[categorical_[j]] = inputs.u(row, j);
  return point;
}

void InputLayout::Round(Inputs& inputs) const {
  for (int j = 0; j < inputs.numeric(); ++j) {
    const Axis& axis = numeric_axis(j);
    if (axis.continuous()) continue;
    for (double& value : inputs.x.col(j)) value = axis.Canonical(value);
  }
  Neutralize(inputs);
}

void InputLayout::Neutralize(Inputs& inputs) const {
  if (!space_.has_rules()) return;
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) {
    Point point = ToPoint(inputs, i);
    space_.Neutralize(point);
    Set(inputs, i, point);
  }
}

void InputLayout::PullBack(const Inputs& from, Inputs& inputs, Eigen::Index row) const {
  if (!space_.has_rules() || space_.Allows(ToPoint(inputs, row))) return;
  const Eigen::RowVectorXd begin = from.x.row(0), step = inputs.x.row(row) - begin;
  constexpr int kHalvings = 20;
  double allowed = 0, size = 1;
  for (int i = 0; i < kHalvings; ++i) {
    size /= 2;
    inputs.x.row(row) = begin + (allowed + size) * step;
    if (space_.Allows(ToPoint(inputs, row))) allowed += size;
  }
  inputs.x.row(row) = begin + allowed * step;
}

void InputLayout::Exclude(const Inputs& inputs, Eigen::VectorXd& values) const {
  if (!space_.has_rules()) return;
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) {
    if (!space_.Allows(ToPoint(inputs, i))) values[i] = std::numeric_limits<double>::lowest();
  }
}

namespace {

// Points nearer than this in every coordinate teach nothing new.
constexpr double kTooClose = 1e-9, kAside = 1e-3;

bool TooClose(const Inputs& point, const Inputs& seen) {
  for (Index i = 0; i < seen.rows(); ++i) {
    const bool same_x =
        point.x.cols() == 0 || (seen.x.row(i) - point.x.row(0)).cwiseAbs().maxCoeff() < kTooClose;
    if (same_x && (seen.u.row(i).array() == point.u.row(0).array()).all()) return true;
  }
  return false;
}

}  // namespace

std::optional<Point> FirstUntried(const std::vector<Ranked>& ranked, const Seen& seen,
                                  UnvisitedPoints& unvisited, Rng& rng) {
  const Space& space = seen.layout.space();
  for (const Ranked& candidate : ranked) {
    Inputs inputs = seen.layout.From({candidate.point});
    if (!space.cardinality().finite && TooClose(inputs, seen.inputs)) {
      for (double& x : inputs.x.row(0)) x = std::clamp(x + kAside * rng.Normal(), 0.0, 1.0);
    }
    const Point point = space.Canonical(seen.layout.ToPoint(inputs, 0));
    if (unvisited.Claim(point)) return point;
  }
  return unvisited.Draw(rng);
}

using Eigen::Index;

Eigen::VectorXd PriorAcquisition::Compute(const Inputs& points, Eigen::MatrixXd* gradient) const {
  Eigen::VectorXd values = promised_.Evaluate(points, gradient);
  const Space& space = layout_.space();
  if (space.priors() == nullptr) return values;
  const SpacePriors& priors = *space.priors();
  for (Index i = 0; i < points.rows(); ++i) {
    const Point point = layout_.ToPoint(points, i);
    values[i] += weight_ * space.LogPrior(point);
    if (gradient == nullptr) continue;
    const std::vector<bool> active = space.Active(point);
    for (int j = 0; j < points.numeric(); ++j) {
      const int axis = layout_.numeric()[j];
      if (active[axis] && priors.Has(axis)) {
        (*gradient)(i, j) += weight_ * priors.Slope(axis, point[axis]);
      }
    }
  }
  return values;
}

}  // namespace shirabe::suggestion::gp
