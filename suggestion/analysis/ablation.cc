#include "suggestion/analysis/ablation.h"

#include <algorithm>
#include <numeric>

namespace shirabe::suggestion::analysis {
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
    std::vector<Index> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return losses(a, 0) < losses(b, 0); });
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
