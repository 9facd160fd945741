// Keeps the levels of an integer or stepped parameter within reach. Once the deviation of such a
// coordinate is much smaller than a level, every draw decodes to the same value, nothing is learnt
// and nothing can change it; the margin is a probability of leaving the level that never vanishes.
// Used by suggestion/cma_search.h after every generation. Pure.
//
//   ℓ₋, ℓ₊   lower and upper edge of the level that holds the mean; none at the ends of the list
//   m, s     mean and deviation of the coordinate
//   p₋, p₊   probability of a draw below ℓ₋, above ℓ₊           α   margin, 1 / (d λ)
//   ξ(p)     the normal quantile Φ⁻¹(1 − p)
//
// R. Hamano, S. Saito, M. Nomura, S. Shirakawa, "CMA-ES with Margin: Lower-Bounding Marginal
// Probability for Mixed-Integer Black-Box Optimization" (GECCO 2022), section 4. Edges may lie
// anywhere, so that logarithmic integers work as well. In levels at the ends only m moves.
#pragma once

#include <optional>

namespace shirabe::suggestion {

struct CmaMarginal {
  double mean = 0;
  double deviation = 0;
};

struct CmaEdges {
  std::optional<double> below, above;
};

// `marginal` with at least α/2 on each side of an inner level, or α beyond the only edge of a level
// at an end; the same where that is so already, and where there is no edge at all.
CmaMarginal WithMargin(const CmaMarginal& marginal, const CmaEdges& edges, double alpha);

}  // namespace shirabe::suggestion
