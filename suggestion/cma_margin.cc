#include "suggestion/cma_margin.h"

#include <algorithm>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>

namespace shirabe::suggestion {
namespace {

// Pr(N(0, 1) > t).
double Beyond(double t) { return std::erfc(t / std::sqrt(2.0)) / 2; }

// ξ: the reverse of Beyond.
double Quantile(double p) { return std::sqrt(2.0) * boost::math::erfc_inv(2 * p); }

// At an end: at least `alpha` on the other side of the edge.
CmaMarginal AtEnd(const CmaMarginal& marginal, const CmaEdges& edges, double alpha) {
  const double farthest = Quantile(alpha) * marginal.deviation;
  CmaMarginal changed = marginal;
  if (edges.above) changed.mean = std::max(marginal.mean, *edges.above - farthest);
  if (edges.below) changed.mean = std::min(marginal.mean, *edges.below + farthest);
  return changed;
}

// Within: raises each side to alpha / 2, takes what that adds from the probabilities above their
// bounds, in proportion, and solves for the mean and deviation that have these probabilities.
CmaMarginal Inside(const CmaMarginal& marginal, const CmaEdges& edges, double alpha) {
  const double least = alpha / 2;
  const double below = Beyond((marginal.mean - *edges.below) / marginal.deviation);
  const double above = Beyond((*edges.above - marginal.mean) / marginal.deviation);
  if (below >= least && above >= least) return marginal;
  const double within = 1 - below - above;
  const double raised_below = std::max(below, least);
  const double raised_above = std::max(above, least);
  const double sum = raised_below + raised_above + within;
  const double share = (1 - sum) / (sum - 3 * least);
  const double low = Quantile(raised_below + share * (raised_below - least));
  const double high = Quantile(raised_above + share * (raised_above - least));
  return {.mean = (*edges.below * high + *edges.above * low) / (low + high),
          .deviation = (*edges.above - *edges.below) / (low + high)};
}

}  // namespace

CmaMarginal WithMargin(const CmaMarginal& marginal, const CmaEdges& edges, double alpha) {
  if (edges.below && edges.above) return Inside(marginal, edges, alpha);
  return AtEnd(marginal, edges, alpha);
}

}  // namespace shirabe::suggestion
