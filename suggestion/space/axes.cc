#include "suggestion/space/axes.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "base/text/did_you_mean.h"
#include "base/text/number.h"

namespace shirabe::suggestion {

StatusOr<double> NumberOf(const v1::Assignment& assignment) {
  switch (assignment.value_case()) {
    case v1::Assignment::kNumber:
      if (std::isnan(assignment.number())) break;
      return assignment.number();
    case v1::Assignment::kInteger: return static_cast<double>(assignment.integer());
    case v1::Assignment::kCategory:
      return absl::InvalidArgumentError("\"" + assignment.category() + "\" is text; give a number");
    case v1::Assignment::VALUE_NOT_SET: break;
  }
  return absl::InvalidArgumentError("there is no value; give a number");
}

double ValueAt(const Axis& axis, double x) { return NumberOf(axis.Decode(x)).value_or(0); }

StatusOr<std::string> CategoryOf(const v1::Assignment& assignment) {
  switch (assignment.value_case()) {
    case v1::Assignment::kCategory: return assignment.category();
    case v1::Assignment::kNumber:
    case v1::Assignment::kInteger: {
      const double number = assignment.value_case() == v1::Assignment::kNumber
                                ? assignment.number()
                                : static_cast<double>(assignment.integer());
      return absl::InvalidArgumentError(FormatNumber(number) +
                                        " is a number; give one of the listed texts");
    }
    case v1::Assignment::VALUE_NOT_SET: break;
  }
  return absl::InvalidArgumentError("there is no value; give one of the listed texts");
}

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

IntervalDistribution MakeSpread(const ContinuousAxis::Range& range) {
  return range.normal ? IntervalDistribution::Normal({0, 1}, 0.5, 1.0 / 6)
                      : IntervalDistribution::Uniform({0, 1});
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

namespace {

constexpr size_t kMaxListedValues = 20;

// The values for an error message; a long list is cut.
std::string Listed(size_t count, const std::function<std::string(size_t)>& text) {
  std::string list;
  for (size_t i = 0; i < std::min(count, kMaxListedValues); ++i) {
    list += (i > 0 ? ", " : "") + text(i);
  }
  if (kMaxListedValues < count) list += ", … (" + std::to_string(count) + " in all)";
  return list;
}

}  // namespace

DiscreteAxis::DiscreteAxis(const std::string& name, std::vector<double> numbers, bool integers)
    : Axis(name),
      numbers_(std::move(numbers)),
      integers_(integers),
      partition_(LevelPartition::Equal(numbers_.size())) {}

v1::Assignment DiscreteAxis::Decode(double x) const {
  v1::Assignment assignment;
  assignment.set_name(name());
  const double number = numbers_[Level(x)];
  if (integers_) {
    assignment.set_integer(static_cast<int64_t>(number));
  } else {
    assignment.set_number(number);
  }
  return assignment;
}

StatusOr<double> DiscreteAxis::Encode(const v1::Assignment& value) const {
  ASSIGN_OR_RETURN(const double number, NumberOf(value));
  const auto found = std::lower_bound(numbers_.begin(), numbers_.end(), number);
  if (found != numbers_.end() && *found == number) return Coordinate(found - numbers_.begin());
  const auto text = [this](size_t i) { return FormatNumber(numbers_[i]); };
  return absl::InvalidArgumentError(FormatNumber(number) +
                                    " is not in its list: " + Listed(numbers_.size(), text));
}

CategoricalAxis::CategoricalAxis(const std::string& name, std::vector<std::string> categories)
    : Axis(name, /*categorical=*/true), categories_(std::move(categories)) {
  indices_.reserve(categories_.size());
  for (size_t i = 0; i < categories_.size(); ++i) indices_.emplace(categories_[i], i);
}

uint64_t CategoricalAxis::Level(double x) const {
  const double last = static_cast<double>(categories_.size() - 1);
  return x > 0 ? static_cast<uint64_t>(std::min(std::round(x), last)) : 0;
}

v1::Assignment CategoricalAxis::Decode(double x) const {
  v1::Assignment assignment;
  assignment.set_name(name());
  assignment.set_category(categories_[Level(x)]);
  return assignment;
}

StatusOr<double> CategoricalAxis::Encode(const v1::Assignment& value) const {
  ASSIGN_OR_RETURN(const std::string category, CategoryOf(value));
  const auto found = indices_.find(category);
  if (found != indices_.end()) return static_cast<double>(found->second);
  const auto near = Nearest(category, categories_);
  return absl::InvalidArgumentError(
      "\"" + category + "\" is not in its list: " +
      Listed(categories_.size(), [this](size_t i) { return categories_[i]; }) +
      (near ? "; did you mean \"" + *near + "\"?" : ""));
}

}  // namespace shirabe::suggestion
