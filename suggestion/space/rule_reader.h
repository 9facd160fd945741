// Reads the rules of a space (spec.shirabe.space) into what space_rules.h asks of points.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"
#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/space/axis.h"

namespace shirabe::suggestion {

// How values are written in spec.shirabe.space, whose shape the schema leaves open: numbers and
// texts alike.
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

// Whether a parameter has one of some values.
struct RuleTest {
  int axis = 0;
  bool listed = false;
  std::vector<uint64_t> levels = {};  // listed: ascending
  double from = 0, to = 1;            // else: coordinates
  std::string words = {};             // "optimizer is adam", for messages
};
using RuleTests = std::vector<RuleTest>;  // all of them; an inactive parameter has no value
struct RuleCondition {
  int axis = 0;
  RuleTests when;
};

struct RuleTerm {
  int axis = 0;
  double factor = 0;
};
// min ≤ Σ factor · value ≤ max, up to what rounding does to the sum; no question where one of its
// parameters is inactive.
struct RuleSum {
  std::vector<RuleTerm> terms;
  double min = 0, max = 0;
  std::string words = {};  // "warmup - epochs ≤ 0", for messages
};

// Of one space; the axes must outlive it. Errors are kInvalidArgument.
class RuleReader {
 public:
  explicit RuleReader(const Axes& axes) : axes_(axes) {}

  // Without a path: what is wrong with the name.
  StatusOr<int> FindAxis(const std::string& name) const;
  // `path` begins the message.
  StatusOr<RuleTests> ReadTests(const google::protobuf::Struct& from,
                                const std::string& path) const;
  StatusOr<RuleSum> ReadSum(const v1::LinearConstraint& from, const std::string& path) const;

 private:
  StatusOr<RuleTest> ReadTest(int axis, const google::protobuf::Value& from) const;
  StatusOr<RuleTest> ReadFields(int axis, const google::protobuf::Struct& from) const;
  StatusOr<RuleTest> ReadRange(int axis, const google::protobuf::Struct& from) const;
  StatusOr<RuleTest> ReadList(int axis, const std::vector<google::protobuf::Value>& values) const;

  const Axes& axes_;
};

// "FIELD: what and the fix", in one line.
Status WrongRule(const std::string& path, const std::string& what);

// What is wrong with several rules.
class WrongRules {
 public:
  // Whether it is OK; if not, it is one of them.
  bool Check(const Status& status) {
    if (!status.ok()) lines_.push_back(Message(status));
    return status.ok();
  }
  // OK if nothing is; else kInvalidArgument, a line each.
  Status status() const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace shirabe::suggestion
