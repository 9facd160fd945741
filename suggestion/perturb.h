// The explore step of population-based training: a point near another one, as far as its
// parameters allow. Pure.
//
//   v    the value of a numeric parameter           in its own unit
//   v·f  the new one, f = 0.8 or 1.2, equally likely, where the range is above 0; else v ± a tenth
//        of the range, since no factor leads away from 0
//
// A step that would leave the range turns back. Integers, steps and lists go to the nearest of
// their values, or to the next one where that is where they are. A category has no neighbours: one
// in four times it becomes another one.
#pragma once

#include <optional>

#include "base/rng.h"
#include "suggestion/space.h"

namespace shirabe::suggestion {

// Each parameter is drawn anew with probability `resample`, else moved as above. nullopt, as in
// Katib, is never.
Point Perturb(const Space& space, const Point& point, std::optional<double> resample, Rng& rng);

}  // namespace shirabe::suggestion
