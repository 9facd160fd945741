// The objective as one parameter, or two, sees it: its average over all others, at each value.
// Pure; any thread.
//
//   PD(x_J) = ∫ m(x_J, x_-J) dx_-J      J. Friedman, "Greedy function approximation", Ann. Stat. 29
//                                       (2001), (53), over the space as it is specified
#pragma once

#include <vector>

#include "suggestion/analysis/estimate.h"

namespace shirabe::suggestion::analysis {

// The ends of a continuous axis and between them at equal distances; else all levels, or evenly
// some of them, of categories the first ones; at most `most` ≥ 2.
GridAxis GridOf(const gp::InputLayout& layout, int axis, int most);

// `axes`: one or two, different. `cost`: as of AffordablePoints.
PartialDependence PartialDependenceOf(const gp::InputLayout& layout, const Functions& functions,
                                      const std::vector<int>& axes, Eigen::Index cost);

}  // namespace shirabe::suggestion::analysis
