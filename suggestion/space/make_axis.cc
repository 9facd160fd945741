#include "suggestion/space/axis.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/sorting.h"
#include "base/text/number.h"
#include "suggestion/space/axes.h"
#include "suggestion/space/exact_decimal.h"
#include "suggestion/space/interval_distribution.h"

namespace shirabe::suggestion {
namespace {

// Beyond it, neighbouring integers are the same double.
constexpr double kMaxInteger = 0x1p53;

bool IsLog(v1::Distribution distribution) {
  return distribution == v1::LOG_UNIFORM || distribution == v1::LOG_NORMAL;
}

bool IsNormal(v1::Distribution distribution) {
  return distribution == v1::NORMAL || distribution == v1::LOG_NORMAL;
}

bool IsInteger(double value) {
  return std::abs(value) <= kMaxInteger && std::floor(value) == value;
}

Status Invalid(const std::string& message) { return absl::InvalidArgumentError(message); }

Status CheckRange(const v1::FeasibleSpace& feasible) {
  if (!feasible.has_min() || !feasible.has_max()) {
    return Invalid(std::string("feasibleSpace has no ") + (feasible.has_min() ? "max" : "min") +
                   "; give both min and max");
  }
  const double min = feasible.min(), max = feasible.max();
  if (!std::isfinite(min) || !std::isfinite(max)) {
    return Invalid("min " + FormatNumber(min) + " and max " + FormatNumber(max) +
                   " must be finite numbers");
  }
  if (min > max) {
    return Invalid("min " + FormatNumber(min) + " is greater than max " + FormatNumber(max) +
                   "; exchange them");
  }
  if (IsLog(feasible.distribution()) && min <= 0) {
    return Invalid("min " + FormatNumber(min) +
                   " has no logarithm; give a min > 0, or a distribution that is not logarithmic");
  }
  if (feasible.has_step() && !(feasible.step() > 0 && std::isfinite(feasible.step()))) {
    return Invalid("step " + FormatNumber(feasible.step()) + " must be greater than 0");
  }
  return absl::OkStatus();
}

Status CheckIntegers(const v1::FeasibleSpace& feasible) {
  const std::pair<const char*, double> fields[] = {
      {"min", feasible.min()}, {"max", feasible.max()}, {"step", feasible.step()}};
  for (const auto& [field, value] : fields) {
    if (!IsInteger(value)) {
      return Invalid(std::string(field) + " " + FormatNumber(value) +
                     " of an int must be a whole number of at most 2^53; round it, or make the "
                     "parameter a double");
    }
  }
  return absl::OkStatus();
}

// The normal distribution of the whole range, min to max, cut off where the shares end.
IntervalDistribution NormalBetween(IntervalDistribution::Interval interval, double min,
                                   double max) {
  return IntervalDistribution::Normal(interval, min + (max - min) / 2, (max - min) / 6);
}

LevelPartition MakeShares(const DecimalLattice& values, const v1::FeasibleSpace& feasible,
                          double step) {
  const uint64_t count = values.count();
  const bool log = IsLog(feasible.distribution()), normal = IsNormal(feasible.distribution());
  if (count == 1 || !(log || normal)) return LevelPartition::Equal(count);
  if (!log) {
    const IntervalDistribution::Interval levels{-0.5, static_cast<double>(count) - 0.5};
    return LevelPartition::ByMass(count, NormalBetween(levels, 0, values.span()), {});
  }
  // The first share goes half a step below min; where that is near zero or below it, to min / 2.
  const double min = feasible.min(), half = step / 2;
  const double low = half < min / 2 ? std::log1p(-half / min) : -std::numbers::ln2;
  const double last = values.At(count - 1);
  const IntervalDistribution::Interval logs{std::log(min) + low,
                                            std::log(last) + std::log1p(half / last)};
  const IntervalDistribution spread =
      normal ? NormalBetween(logs, std::log(min), std::log(feasible.max()))
             : IntervalDistribution::Uniform(logs);
  return LevelPartition::ByMass(count, spread, {.log = true, .min = min, .step = step});
}

StatusOr<std::unique_ptr<Axis>> MakeLattice(const v1::ParameterSpec& spec, double step) {
  const v1::FeasibleSpace& feasible = spec.feasible_space();
  ASSIGN_OR_RETURN(const DecimalLattice values,
                   DecimalLattice::Create(feasible.min(), feasible.max(), step));
  const LevelPartition shares = MakeShares(values, feasible, step);
  if (!shares.Distinguishable()) {
    return Invalid("min " + FormatNumber(feasible.min()) + ", max " + FormatNumber(feasible.max()) +
                   ": some of so many values would be too improbable to ever be chosen; narrow the "
                   "range, choose a larger step, or use distribution uniform");
  }
  return std::make_unique<LatticeAxis>(spec.name(), values, shares,
                                       spec.parameter_type() == v1::INT);
}

StatusOr<std::unique_ptr<Axis>> MakeInt(const v1::ParameterSpec& spec) {
  RETURN_IF_ERROR(CheckRange(spec.feasible_space()));
  v1::ParameterSpec with_step = spec;
  if (!spec.feasible_space().has_step()) with_step.mutable_feasible_space()->set_step(1);
  RETURN_IF_ERROR(CheckIntegers(with_step.feasible_space()));
  return MakeLattice(with_step, with_step.feasible_space().step());
}

StatusOr<std::unique_ptr<Axis>> MakeDouble(const v1::ParameterSpec& spec) {
  const v1::FeasibleSpace& feasible = spec.feasible_space();
  RETURN_IF_ERROR(CheckRange(feasible));
  if (feasible.min() == feasible.max()) {
    return std::make_unique<DiscreteAxis>(spec.name(), std::vector<double>{feasible.min()},
                                          /*integers=*/false);
  }
  if (feasible.has_step()) return MakeLattice(spec, feasible.step());
  return std::make_unique<ContinuousAxis>(
      spec.name(), ContinuousAxis::Range{.min = feasible.min(),
                                         .max = feasible.max(),
                                         .log = IsLog(feasible.distribution()),
                                         .normal = IsNormal(feasible.distribution())});
}

StatusOr<std::unique_ptr<Axis>> MakeDiscrete(const v1::ParameterSpec& spec) {
  const auto& list = spec.feasible_space().numbers();
  std::vector<double> numbers(list.begin(), list.end());
  if (numbers.empty()) return Invalid("the list is empty; give the numbers to choose from");
  for (double& number : numbers) {
    if (!std::isfinite(number)) {
      return Invalid(FormatNumber(number) + " in the list is not a finite number; remove it");
    }
    number += 0.0;  // -0 becomes 0
  }
  StableSort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const bool integers = std::all_of(numbers.begin(), numbers.end(), IsInteger);
  return std::make_unique<DiscreteAxis>(spec.name(), std::move(numbers), integers);
}

StatusOr<std::unique_ptr<Axis>> MakeCategorical(const v1::ParameterSpec& spec) {
  std::vector<std::string> categories;
  absl::flat_hash_set<absl::string_view> known;
  for (const std::string& category : spec.feasible_space().list()) {
    if (known.insert(category).second) categories.push_back(category);
  }
  if (categories.empty()) return Invalid("the list is empty; give the values to choose from");
  return std::make_unique<CategoricalAxis>(spec.name(), std::move(categories));
}

}  // namespace

StatusOr<std::unique_ptr<Axis>> MakeAxis(const v1::ParameterSpec& spec) {
  switch (spec.parameter_type()) {
    case v1::DOUBLE: return MakeDouble(spec);
    case v1::INT: return MakeInt(spec);
    case v1::DISCRETE: return MakeDiscrete(spec);
    case v1::CATEGORICAL: return MakeCategorical(spec);
    default: return Invalid("it has no parameterType; give double, int, discrete or categorical");
  }
}

}  // namespace shirabe::suggestion
