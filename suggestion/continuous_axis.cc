#include "suggestion/continuous_axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/number.h"
#include "suggestion/assignment_value.h"

namespace shirabe::suggestion {
namespace {

// `value` rounded to so many significant decimal digits.
double RoundToDigits(double value, int digits) {
  char text[40];
  char* const end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific, digits - 1).ptr;
  double rounded = value;
  std::from_chars(text, end, rounded);
  return rounded;
}

Spread MakeSpread(const ContinuousAxis::Range& range) {
  return range.normal ? Spread::Normal({0, 1}, 0.5, 1.0 / 6) : Spread::Uniform({0, 1});
}

}  // namespace

ContinuousAxis::ContinuousAxis(const std::string& name, Range range)
    : Axis(name), range_(range), spread_(MakeSpread(range)) {
  range_.min += 0.0;  // -0 becomes 0
  range_.max += 0.0;
  if (!std::isfinite(range_.max - range_.min)) scale_ = 0.5;
  if (!range_.log) return;
  const double ratio = (range_.max - range_.min) / range_.min;
  log_wide_ = !std::isfinite(ratio);
  log_span_ = log_wide_ ? std::log(range_.max) - std::log(range_.min) : std::log1p(ratio);
}

double ContinuousAxis::Coordinate(uint64_t) const { CHECK(!"a continuous axis has no levels"); }
uint64_t ContinuousAxis::Level(double) const { CHECK(!"a continuous axis has no levels"); }

v1::Assignment ContinuousAxis::Decode(double x) const {
  v1::Assignment assignment;
  assignment.set_name(name());
  assignment.set_number(Value(Canonical(x)));
  return assignment;
}

StatusOr<double> ContinuousAxis::Encode(const v1::Assignment& value) const {
  ASSIGN_OR_RETURN(const double number, NumberOf(value));
  if (number >= range_.min && number <= range_.max) return Unit(number);
  return absl::InvalidArgumentError(FormatNumber(number) + " is not within " +
                                    FormatNumber(range_.min) + " … " + FormatNumber(range_.max));
}

// Settles at once, or after one step where no double has the coordinate x; the bound is for what
// the rounding of a mathematics library might do.
double ContinuousAxis::Canonical(double x) const {
  for (int i = 0; i < 8; ++i) {
    if (!(x > 0)) return 0;
    if (x >= 1) return 1;
    const double next = Unit(Preimage(x));
    if (next == x) break;
    x = next;
  }
  return x;
}

double ContinuousAxis::Unit(double value) const {
  const double from_min = value * scale_ - range_.min * scale_;
  if (!range_.log) return spread_.Cdf(from_min / (range_.max * scale_ - range_.min * scale_));
  // log1p keeps the precision close to min that a difference of logarithms loses.
  const double log = log_wide_ ? std::log(value) - std::log(range_.min)
                               : std::log1p(from_min / (range_.min * scale_));
  return spread_.Cdf(log / log_span_);
}

// The shortest decimal with the canonical coordinate x.
double ContinuousAxis::Value(double x) const {
  if (x == 0) return range_.min;
  if (x == 1) return range_.max;
  const double value = Preimage(x);
  const double unit = Unit(value);
  int least = 1, most = 17;  // 17 digits always give the value itself
  while (least < most) {
    const int digits = (least + most) / 2;
    if (Unit(RoundToDigits(value, digits)) == unit) {
      most = digits;
    } else {
      least = digits + 1;
    }
  }
  return RoundToDigits(value, most);
}

// The inverse of Unit, up to rounding.
double ContinuousAxis::RoughValue(double x) const {
  const double position = spread_.Quantile(x);
  double value = 0;
  if (!range_.log) {
    const double low = range_.min * scale_;
    value = (low + position * (range_.max * scale_ - low)) / scale_;
  } else if (log_wide_) {
    value = std::exp(std::log(range_.min) + position * log_span_);
  } else {
    value = range_.min + range_.min * std::expm1(position * log_span_);
  }
  return std::clamp(value, range_.min, range_.max);
}

// A value whose coordinate is exactly x, if one can be found; else one whose coordinate is near.
double ContinuousAxis::Preimage(double x) const {
  constexpr int kNeighbours = 4;  // what the rounding of RoughValue can be off by
  constexpr int kDigits = 15;
  const double rough = RoughValue(x);
  const double unit = Unit(rough);
  double value = rough;
  double there = unit;
  for (int i = 0; i < kNeighbours && there != x && (there < x) == (unit < x); ++i) {
    value = std::nextafter(value, unit < x ? range_.max : range_.min);
    there = Unit(value);
  }
  if (there == x) return value;
  // In the tail of a normal distribution Unit is coarser than the values; short decimals, which are
  // what people type, are still found.
  for (int digits = kDigits; digits > 0; --digits) {
    value = RoundToDigits(rough, digits);
    if (Unit(value) == x) return value;
  }
  return rough;
}

}  // namespace shirabe::suggestion
