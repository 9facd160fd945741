#include "suggestion/analysis/importance.h"

#include <algorithm>

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
  const auto losses = [&](const gp::Inputs& inputs) { return drawn.Losses(inputs); };
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

}  // namespace shirabe::suggestion::analysis
