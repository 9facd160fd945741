#include "suggestion/perturb.h"

#include <algorithm>
#include <cmath>

#include "suggestion/assignment_value.h"

namespace shirabe::suggestion {
namespace {

constexpr double kFactor = 0.2;
constexpr double kShift = 0.1;  // of the range
constexpr double kOtherCategory = 0.25;

double ValueAt(const Axis& axis, double x) { return NumberOf(axis.Decode(x)).value_or(0); }

// Up or down from `value`, and back where that leaves the range.
double Moved(const Axis& axis, double value, bool up) {
  const double min = ValueAt(axis, 0), max = ValueAt(axis, 1);
  const auto to = [&](bool upwards) {
    const double sign = upwards ? 1 : -1;
    const double moved =
        min > 0 ? value * (1 + sign * kFactor) : value + sign * kShift * (max - min);
    return std::clamp(moved, min, max);
  };
  return to(up) != value ? to(up) : to(!up);
}

// The level whose value is nearest; of two equally near ones the lower.
uint64_t NearestLevel(const Axis& axis, double value) {
  uint64_t low = 0, high = axis.levels() - 1;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (ValueAt(axis, axis.Coordinate(middle)) < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return 0;
  const double above = ValueAt(axis, axis.Coordinate(low)) - value;
  const double below = value - ValueAt(axis, axis.Coordinate(low - 1));
  return below <= above ? low - 1 : low;
}

double PerturbLevel(const Axis& axis, double x, bool up) {
  const uint64_t from = axis.Level(x), last = axis.levels() - 1;
  if (last == 0) return x;
  const double value = ValueAt(axis, x), moved = Moved(axis, value, up);
  uint64_t to = NearestLevel(axis, moved);
  if (to == from) to = (moved > value && from < last) || from == 0 ? from + 1 : from - 1;
  return axis.Coordinate(to);
}

double PerturbContinuous(const Axis& axis, double x, bool up) {
  v1::Assignment moved;
  moved.set_name(axis.name());
  moved.set_number(Moved(axis, ValueAt(axis, x), up));
  return axis.Encode(moved).value_or(x);
}

double PerturbCategory(const Axis& axis, double x, Rng& rng) {
  const bool stay = rng.Uniform() >= kOtherCategory;
  if (stay || axis.levels() == 1) return x;
  const uint64_t other = rng.Below(axis.levels() - 1);
  return axis.Coordinate(other >= axis.Level(x) ? other + 1 : other);
}

}  // namespace

Point Perturb(const Space& space, const Point& point, std::optional<double> resample, Rng& rng) {
  const Point fresh = space.Sample(rng);
  Point perturbed = point;
  for (int i = 0; i < space.size(); ++i) {
    const Axis& axis = space.axis(i);
    const bool anew = rng.Uniform() < resample.value_or(0);
    const bool up = rng.Below(2) == 1;
    if (anew) {
      perturbed[i] = fresh[i];
    } else if (axis.categorical()) {
      perturbed[i] = PerturbCategory(axis, point[i], rng);
    } else {
      perturbed[i] = axis.continuous() ? PerturbContinuous(axis, point[i], up)
                                       : PerturbLevel(axis, point[i], up);
    }
  }
  return space.Canonical(perturbed);
}

}  // namespace shirabe::suggestion
