// The volume that a set of losses dominates below a reference point (E. Zitzler, L. Thiele, 1998),
// and the part of the space that it leaves, in boxes. Pure; any thread.
//
//   P   points, losses, minimised                n × m
//   r   reference: nothing beyond it counts      m
//   H   hypervolume, the volume of { y ≤ r : some p in P has p ≤ y }
#pragma once

#include <vector>

namespace shirabe::suggestion {

using Losses = std::vector<double>;

// H, exactly, by the WFG algorithm (L. While, L. Bradstreet, L. Barone, "A fast way of calculating
// exact hypervolumes", 2012): O(n log n) for two losses, exponential in m at worst; for 60 points
// of six losses some milliseconds. A caller bounds n.
double Hypervolume(std::vector<Losses> points, const Losses& reference);

// lower < upper in each coordinate; lower may be -∞.
struct LossBox {
  Losses lower, upper;
};

// Disjoint boxes, together all of { y < r : no p in P has p ≤ y }. At most n + 1 for m = 2, about
// 2n + 1 for m = 3 (K. Yang et al., "Efficient computation of expected hypervolume improvement
// using box decomposition algorithms", 2019). Equals and dominated points cost time and change
// nothing.
std::vector<LossBox> NonDominatedBoxes(const std::vector<Losses>& points, const Losses& reference);

}  // namespace shirabe::suggestion
