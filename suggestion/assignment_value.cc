#include "suggestion/assignment_value.h"

#include <cmath>

#include "base/number.h"

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

}  // namespace shirabe::suggestion
