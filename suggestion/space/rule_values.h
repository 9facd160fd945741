// How values are written in spec.shirabe.space, whose shape the schema leaves open: numbers and
// texts alike.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"
#include "google/protobuf/struct.pb.h"
#include "suggestion/space/axis.h"

namespace shirabe::suggestion {

inline std::string RuleText(const google::protobuf::Value& value) {
  return value.has_number_value() ? FormatNumber(value.number_value()) : value.string_value();
}

// As the kind of axis takes it, or as text, which Axis::Encode refuses with the reason.
inline v1::Assignment TypedValue(const Axis& axis, const google::protobuf::Value& value) {
  v1::Assignment assignment;
  const auto number = ParseNumber(RuleText(value));
  if (!axis.categorical() && number) {
    assignment.set_number(*number);
  } else {
    assignment.set_category(RuleText(value));
  }
  return assignment;
}

inline std::string NoSuchParameter(const std::string& name, const std::vector<std::string>& names) {
  const auto near = Nearest(name, names);
  return absl::StrCat(
      "\"", name, "\" is not a parameter",
      near ? absl::StrCat("; did you mean \"", *near, "\"?") : ": name one of spec.parameters");
}

}  // namespace shirabe::suggestion
