#include "suggestion/list_axis.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/did_you_mean.h"
#include "base/number.h"
#include "suggestion/assignment_value.h"

namespace shirabe::suggestion {
namespace {

constexpr size_t kMostListed = 20;

// The values for an error message; a long list is cut.
std::string Listed(size_t count, const std::function<std::string(size_t)>& text) {
  std::string list;
  for (size_t i = 0; i < std::min(count, kMostListed); ++i) {
    list += (i > 0 ? ", " : "") + text(i);
  }
  if (kMostListed < count) list += ", … (" + std::to_string(count) + " in all)";
  return list;
}

}  // namespace

DiscreteAxis::DiscreteAxis(const std::string& name, std::vector<double> numbers, bool integers)
    : Axis(name),
      numbers_(std::move(numbers)),
      integers_(integers),
      shares_(Shares::Equal(numbers_.size())) {}

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
