// The values min + k·step, computed in decimal, so that 0.1 + 2·0.1 is 0.3: what a person wrote as
// 0.1 is the decimal 0.1, not the double next to it. Used by the axes of integers and of stepped
// doubles. Immutable, any thread; the arithmetic is exact in 128 bits, and each value is the double
// nearest to the exact decimal.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace shirabe::suggestion {

class DecimalLattice {
 public:
  // min ≤ max, step > 0, all finite. kInvalidArgument, with the fix, if there would be more than
  // 2^53 + 1 values (a unit coordinate could not tell them apart), if neighbours would be the same
  // double, or if the three numbers span more than 37 decimal digits.
  static StatusOr<DecimalLattice> Create(double min, double max, double step);

  // Number of values; the last is the greatest min + k·step ≤ max.
  uint64_t count() const { return count_; }
  // Value `k` < count().
  double At(uint64_t k) const;
  // (max - min) / step, not rounded down.
  double span() const { return span_; }

 private:
  __extension__ using Int128 = __int128;

  Int128 first_ = 0;  // in units of 10^exponent_
  Int128 step_ = 1;
  int exponent_ = 0;
  uint64_t count_ = 1;
  double span_ = 0;
};

}  // namespace shirabe::suggestion
