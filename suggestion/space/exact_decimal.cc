#include "suggestion/space/exact_decimal.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/text/number.h"

namespace shirabe::suggestion {
namespace {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

constexpr uint64_t kMaxCount = (uint64_t{1} << 53) + 1;
constexpr int kMaxDigits = 37;

// digits · 10^exponent, exactly.
struct Decimal {
  Int128 digits = 0;
  int exponent = 0;
};

// The shortest decimal that reads back as `value`: what was written in the specification.
Decimal ToDecimal(double value) {
  char text[40];
  char* const end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  Decimal decimal;
  bool negative = false;
  bool fraction = false;
  char* c = text;
  for (; *c != 'e'; ++c) {
    if (*c == '-') negative = true;
    if (*c == '.') fraction = true;
    if (*c < '0' || *c > '9') continue;
    decimal.digits = decimal.digits * 10 + (*c - '0');
    if (fraction) --decimal.exponent;
  }
  int exponent = 0;
  std::from_chars(c[1] == '+' ? c + 2 : c + 1, end, exponent);
  decimal.exponent += exponent;
  if (negative) decimal.digits = -decimal.digits;
  return decimal;
}

// The digits at a smaller exponent; nullopt where they would be more than kMaxDigits.
std::optional<Int128> Rescale(const Decimal& decimal, int exponent) {
  if (decimal.digits == 0) return 0;
  Int128 limit = 1;
  for (int i = 1; i < kMaxDigits; ++i) limit *= 10;
  Int128 digits = decimal.digits;
  for (int e = decimal.exponent; e > exponent; --e) {
    if (digits >= limit || digits <= -limit) return std::nullopt;
    digits *= 10;
  }
  return digits;
}

// The double nearest to digits · 10^exponent, through its text.
double ParseDigits(Int128 digits, int exponent) {
  char text[64];  // a sign, 39 digits, 'e', the exponent, written from the back
  char* begin = text + 48;
  char* end = begin;
  *end++ = 'e';
  end = std::to_chars(end, text + sizeof text, exponent).ptr;
  for (Uint128 rest = digits < 0 ? -static_cast<Uint128>(digits) : digits; rest > 0; rest /= 10) {
    *--begin = static_cast<char>('0' + static_cast<int>(rest % 10));
  }
  if (digits < 0) *--begin = '-';
  return ParseNumber(std::string_view(begin, end - begin)).value_or(0);
}

// The double nearest to digits · 10^exponent.
double ToDouble(Int128 digits, int exponent) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr Int128 kExact = Int128{1} << 53;
  const bool exact = digits >= -kExact && digits <= kExact && std::abs(exponent) <= 22;
  if (!exact) return ParseDigits(digits, exponent);
  // Both operands are exact doubles, so that the one operation rounds correctly (Clinger 1990).
  const double value = static_cast<double>(static_cast<int64_t>(digits));
  return exponent < 0 ? value / kPowers[-exponent] : value * kPowers[exponent];
}

int LeastExponent(const Decimal& a, const Decimal& b, const Decimal& c) {
  int least = c.exponent;  // of the step, which is never zero
  if (a.digits != 0) least = std::min(least, a.exponent);
  if (b.digits != 0) least = std::min(least, b.exponent);
  return least;
}

std::string Describe(double min, double max, double step) {
  return "min " + FormatNumber(min) + ", max " + FormatNumber(max) + ", step " + FormatNumber(step);
}

}  // namespace

StatusOr<DecimalLattice> DecimalLattice::Create(double min, double max, double step) {
  const Decimal low = ToDecimal(min), high = ToDecimal(max), by = ToDecimal(step);
  DecimalLattice lattice;
  lattice.exponent_ = LeastExponent(low, high, by);
  const auto first = Rescale(low, lattice.exponent_);
  const auto last = Rescale(high, lattice.exponent_);
  const auto each = Rescale(by, lattice.exponent_);
  if (!first || !last || !each) {
    return absl::InvalidArgumentError(Describe(min, max, step) +
                                      " span more than 37 decimal digits; round them, or leave "
                                      "the step out");
  }
  lattice.first_ = *first;
  lattice.step_ = *each;
  const Int128 steps = (*last - *first) / *each;
  if (steps >= static_cast<Int128>(kMaxCount)) {
    return absl::InvalidArgumentError(Describe(min, max, step) +
                                      " make more than 2^53 + 1 values; narrow the range, or "
                                      "choose a larger step");
  }
  lattice.count_ = static_cast<uint64_t>(steps) + 1;
  lattice.span_ = static_cast<double>(*last - *first) / static_cast<double>(*each);
  const uint64_t end = lattice.count_ - 1;
  if (end > 0 && (lattice.At(0) == lattice.At(1) || lattice.At(end - 1) == lattice.At(end))) {
    return absl::InvalidArgumentError(Describe(min, max, step) +
                                      ": the step is too small to tell neighbouring values apart "
                                      "as doubles; choose a larger one");
  }
  return lattice;
}

double DecimalLattice::At(uint64_t k) const {
  return ToDouble(first_ + static_cast<Int128>(k) * step_, exponent_);
}

}  // namespace shirabe::suggestion
