// exp(-x) for loops over many x: written so that compilers do several at once. Pure; any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <numbers>

namespace shirabe::suggestion::gp {

constexpr double kFarthestDecay = 700;  // exp(-x) is still a normal number

// exp(-x) of 0 ≤ x ≤ kFarthestDecay to a relative 1e-14, in half the time of std::exp or Eigen's,
// which divide: and the processor's one unit for that is busy with square roots. exp(-x) =
// 2^m exp(f), m whole, |f| ≤ log(2) / 2, and exp(f) by its series.
inline double Decay(double x) {
  constexpr double kRounds = 0x1.8p52;  // the low bits of a sum with it are its whole part
  constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 0x1.a39ef35793c76p-33;
  const double sum = kRounds - x * std::numbers::log2e;
  const double m = sum - kRounds;
  const double f = (-x - m * kLog2High) - m * kLog2Low;
  double series = 1.0 / 39916800 * f + 1.0 / 3628800;
  series = series * f + 1.0 / 362880;
  series = series * f + 1.0 / 40320;
  series = series * f + 1.0 / 5040;
  series = series * f + 1.0 / 720;
  series = series * f + 1.0 / 120;
  series = series * f + 1.0 / 24;
  series = series * f + 1.0 / 6;
  series = series * f + 1.0 / 2;
  series = series * f + 1.0;
  series = series * f + 1.0;
  return std::bit_cast<double>(std::bit_cast<uint64_t>(series) +
                               (std::bit_cast<uint64_t>(sum) << 52));
}

}  // namespace shirabe::suggestion::gp
