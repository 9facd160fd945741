#include "suggestion/lattice_axis.h"

#include <algorithm>
#include <cmath>

#include "base/number.h"
#include "suggestion/assignment_value.h"

namespace shirabe::suggestion {

v1::Assignment LatticeAxis::Decode(double x) const {
  const double value = values_.At(Level(x));
  v1::Assignment assignment;
  assignment.set_name(name());
  if (integer_) {
    assignment.set_integer(static_cast<int64_t>(value));
  } else {
    assignment.set_number(value);
  }
  return assignment;
}

StatusOr<double> LatticeAxis::Encode(const v1::Assignment& value) const {
  ASSIGN_OR_RETURN(const double number, NumberOf(value));
  const uint64_t last = levels() - 1;
  const double low = values_.At(0), high = values_.At(last);
  // Halves, because high - low may overflow. Rounding may miss the level by one.
  const double range = high / 2 - low / 2;
  const double part = last == 0 ? 0 : (number / 2 - low / 2) / range;
  const double guess = std::round(std::clamp(part, 0.0, 1.0) * static_cast<double>(last));
  const uint64_t middle = std::min(static_cast<uint64_t>(guess), last);
  const double tolerance = last == 0 ? 0 : 2e-9 * (range / static_cast<double>(last));
  const uint64_t from = middle > 0 ? middle - 1 : 0;
  for (uint64_t k = from; k <= std::min(middle + 1, last); ++k) {
    if (std::abs(values_.At(k) - number) <= tolerance) return Coordinate(k);
  }
  return absl::InvalidArgumentError(FormatNumber(number) +
                                    " is not one of its values; near it is " +
                                    FormatNumber(values_.At(middle)) + ", and they go from " +
                                    FormatNumber(low) + " to " + FormatNumber(high));
}

}  // namespace shirabe::suggestion
