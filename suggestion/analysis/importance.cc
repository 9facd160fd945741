#include "suggestion/analysis/importance.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/sorting.h"

namespace shirabe::suggestion::analysis {
namespace {

using Eigen::Index;

constexpr int kDraws = 32;
constexpr Index kMinPoints = 64, kMaxPoints = 1024;

// In each quarter of the axis, of the levels or of the categories.
constexpr uint64_t kParts = 4;
constexpr int kTriedInEach = 3;
// Below so many results every fourth verdict was wrong, or more (bench/importance).
constexpr int64_t kMinForVerdict = 12;

Verdict VerdictOf(const Estimate& total, bool tried_all_over) {
  if (total.low > kNegligible) return Verdict::kMatters;
  if (total.high < kNegligible && tried_all_over) return Verdict::kDoesNotMatter;
  return Verdict::kTooFewTrials;
}

// A draw in which a parameter does nothing at all is never drawn, though parameters often do
// nothing: what is not more than negligible may be none.
void WidenToNone(Estimate& share) {
  if (share.low < kNegligible) share.low = 0;
}

// The best less the worst, above 0.
double RangeOfResults(const gp::Warp& warp) {
  return warp.Unwarp(warp.warped().maxCoeff()) - warp.Unwarp(warp.warped().minCoeff());
}

bool TriedAllOver(const FittedHistory& history, int j) {
  const gp::Inputs& inputs = history.surrogate().posterior.inputs();
  const Axis& axis = history.layout().space().axis(j);
  const uint64_t levels = axis.levels();
  const uint64_t parts = levels == 0 ? kParts : std::min(levels, kParts);
  std::vector<int> tried(parts, 0);
  for (Index i = 0; i < inputs.rows(); ++i) {
    const Point point = history.layout().ToPoint(inputs, i);
    if (!history.layout().space().Active(point)[j]) continue;
    const double x = point[j];
    const uint64_t part = levels > 0 ? axis.Level(x) * parts / levels
                                     : static_cast<uint64_t>(x * static_cast<double>(parts));
    ++tried[std::min(part, parts - 1)];
  }
  return *std::min_element(tried.begin(), tried.end()) >= kTriedInEach;
}

}  // namespace

std::vector<ParameterImportance> Importances(const FittedHistory& history) {
  const PosteriorFunctions drawn = history.DrawOfSpace(kDraws);
  const int d = history.layout().space().size();
  const Index points = AffordablePoints(drawn.cost(), d + 2, kMinPoints, kMaxPoints);
  const double range = RangeOfResults(history.surrogate().warp);
  const auto losses = [&](const gp::Inputs& inputs) -> Eigen::MatrixXd {
    return drawn.Losses(inputs) / range;
  };
  std::vector<ParameterImportance> importances;
  const Basis& basis = history.basis();
  const bool tells = basis.explained > 0 && basis.results >= kMinForVerdict;
  for (SobolIndex index : SobolIndices(history.layout(), losses, points)) {
    WidenToNone(index.total);
    WidenToNone(index.first);
    const bool all_over = TriedAllOver(history, static_cast<int>(importances.size()));
    importances.push_back(
        {index, tells ? VerdictOf(index.total, all_over) : Verdict::kTooFewTrials});
  }
  return importances;
}

namespace {

using Eigen::ArrayXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;

constexpr uint64_t kIndexSampleSeed = 1;

// Of shares, which are small: std::hypot needs glibc 2.35.
double Length(double a, double b) { return std::sqrt(a * a + b * b); }

ArrayXd ColumnMeans(const MatrixXd& values) { return values.colwise().mean().array(); }

constexpr Index kQuarters = 4;
constexpr double kStudent = 2.353;  // 95 % quantile of Student's t with 3 degrees of freedom
// What rounding alone makes of a constant: at least, and for each unit of its size.
constexpr double kLeastSpread = 1e-12, kUnitRounding = 1e-15;

// What is seen of functions (columns) at the points, to be divided: squares about the mean.
struct Sampled {
  MatrixXd squares;
  ArrayXd variance;  // their means; 0 of a constant
};

// By how much a share of the first function may be wrong for want of points, with 90 %.
double SamplingError(const MatrixXd& parts, const Sampled& sampled, double share) {
  const Index size = parts.rows() / kQuarters;
  double sum = 0;
  for (Index i = 0; i < kQuarters; ++i) {
    const auto rows = Eigen::seqN(i * size, size);
    const double error = parts(rows, 0).mean() - share * sampled.squares(rows, 0).mean();
    sum += error * error;
  }
  return kStudent * std::sqrt(sum / (kQuarters * (kQuarters - 1))) / sampled.variance[0];
}

// The means of `parts` over the variance, within [0, 1]; 0 where there is none.
Estimate Share(const MatrixXd& parts, const Sampled& sampled) {
  const ArrayXd& variance = sampled.variance;
  const ArrayXd shares = (variance > 0).select(ColumnMeans(parts) / variance, 0);
  Estimate estimate = EstimateOf(shares.max(0).min(1));
  if (!(variance[0] > 0)) return estimate;
  const double error = SamplingError(parts, sampled, shares[0]), value = estimate.value;
  estimate.low = std::max(0.0, value - Length(value - estimate.low, error));
  estimate.high = std::min(1.0, value + Length(estimate.high - value, error));
  return estimate;
}

}  // namespace

std::vector<SobolIndex> SobolIndices(const gp::InputLayout& layout, const Functions& functions,
                                     Index points) {
  const gp::Inputs a = Spread(layout, {points, 0, 2}, kIndexSampleSeed);
  const gp::Inputs b = Spread(layout, {points, 1, 2}, kIndexSampleSeed);
  MatrixXd at_a = ValuesAt(layout, functions, a), at_b = ValuesAt(layout, functions, b);
  // About the mean, so that rounding does not make a variance of a large constant; itself from the
  // first value, since a sum of large ones loses what they differ in.
  const RowVectorXd first = at_a.row(0);
  const ArrayXd above =
      (ColumnMeans(at_a.rowwise() - first) + ColumnMeans(at_b.rowwise() - first)) / 2;
  const RowVectorXd mean = first + above.matrix().transpose();
  at_a.rowwise() -= mean;
  at_b.rowwise() -= mean;
  Sampled sampled{(at_a.cwiseAbs2() + at_b.cwiseAbs2()) / 2, {}};
  sampled.variance = ColumnMeans(sampled.squares);
  const ArrayXd least = (kUnitRounding * mean.transpose().array().abs()).max(kLeastSpread).square();
  sampled.variance = (sampled.variance > least).select(sampled.variance, 0);
  std::vector<SobolIndex> indices;
  for (int j = 0; j < layout.space().size(); ++j) {
    gp::Inputs mixed = a;
    CopyAxis(layout, j, b, mixed);
    MatrixXd change = ValuesAt(layout, functions, mixed);
    change.rowwise() -= mean;
    change -= at_a;
    indices.push_back({.total = Share(change.cwiseAbs2() / 2, sampled),
                       .first = Share(at_b.cwiseProduct(change), sampled)});
  }
  return indices;
}

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;

constexpr size_t kCompared = 64;

// `point` with each of these coordinates, one at a time, as in `to`.
gp::Inputs Flipped(const gp::InputLayout& layout, const Point& point, const Point& to,
                   const std::vector<int>& axes) {
  gp::Inputs inputs = layout.Empty(static_cast<Index>(axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    Point flipped = point;
    flipped[axes[i]] = to[axes[i]];
    layout.Set(inputs, static_cast<Index>(i), flipped);
  }
  return inputs;
}

}  // namespace

AblationPath Ablate(const gp::InputLayout& layout, const Functions& functions, const Point& from,
                    const Point& to) {
  AblationPath path;
  const MatrixXd ends = functions(layout.From({from, to}));
  path.from = EstimateOf(ends.row(0));
  path.to = EstimateOf(ends.row(1));
  std::vector<int> left;  // the most promising ones last time first
  for (int j = 0; j < layout.space().size(); ++j) {
    if (from[j] != to[j]) left.push_back(j);
  }
  Point point = from;
  RowVectorXd before = ends.row(0);
  while (!left.empty()) {
    const size_t count = path.steps.empty() ? left.size() : std::min(left.size(), kCompared);
    const std::vector<int> compared(left.begin(), left.begin() + static_cast<int64_t>(count));
    const MatrixXd losses = functions(Flipped(layout, point, to, compared));
    const auto less = [&](Index a, Index b) { return losses(a, 0) < losses(b, 0); };
    const std::vector<size_t> order = SortedPlaces(count, less);
    for (size_t i = 0; i < count; ++i) left[i] = compared[order[i]];
    const int axis = left.front();
    left.erase(left.begin());
    point[axis] = to[axis];
    const RowVectorXd after = losses.row(order[0]);
    path.steps.push_back({axis, EstimateOf(after), EstimateOf(before - after)});
    before = after;
  }
  return path;
}

std::optional<AblationEnds> DefaultEnds(const History& history) {
  const std::vector<int64_t> ranked = RankTrials(history).ranked;
  if (ranked.size() < 2) return std::nullopt;
  return AblationEnds{.from = ranked[ranked.size() / 2], .to = ranked.front()};
}

}  // namespace shirabe::suggestion::analysis
