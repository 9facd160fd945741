#include "suggestion/space/rule_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/sorting.h"
#include "base/text/number.h"
#include "suggestion/space/axes.h"

namespace shirabe::suggestion {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// How many levels of an ordered axis are less than `value`, or not greater.
uint64_t LevelsBelow(const Axis& axis, double value, bool inclusive) {
  uint64_t from = 0, to = axis.levels();
  while (from < to) {
    const uint64_t middle = from + (to - from) / 2;
    const double there = ValueAt(axis, axis.Coordinate(middle));
    if (there < value || (inclusive && there == value)) {
      from = middle + 1;
    } else {
      to = middle;
    }
  }
  return from;
}

}  // namespace

Status WrongRule(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrReplaceAll(absl::StrCat(path, ": ", what), {{"\n", " "}}));
}

Status WrongRules::status() const {
  return lines_.empty() ? absl::OkStatus()
                        : absl::InvalidArgumentError(absl::StrJoin(lines_, "\n"));
}

StatusOr<int> RuleReader::FindAxis(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i]->name() == name) return static_cast<int>(i);
    names.push_back(axes_[i]->name());
  }
  return absl::InvalidArgumentError(NoSuchParameter(name, names));
}

namespace {

// Of all fields of a Struct, whose order is arbitrary.
std::vector<std::string> SortedNames(const Struct& from) {
  std::vector<std::string> names;
  for (const auto& [name, value] : from.fields()) names.push_back(name);
  StableSort(names);
  return names;
}

// " + 2·layers", " - epochs"; without the plus at the beginning.
std::string TermWords(double factor, const std::string& name, bool first) {
  const double size = std::abs(factor);
  const char* sign = factor < 0 ? (first ? "-" : " - ") : (first ? "" : " + ");
  return absl::StrCat(sign, size == 1 ? "" : FormatNumber(size) + "·", name);
}

}  // namespace

StatusOr<RuleSum> RuleReader::ReadSum(const v1::LinearConstraint& from,
                                      const std::string& path) const {
  if (from.sum().fields().empty()) {
    return WrongRule(path + ".sum", "is empty: give parameters with factors, such as {warmup: 1}");
  }
  const double infinity = std::numeric_limits<double>::infinity();
  RuleSum sum{.min = from.has_min() ? from.min() : -infinity,
              .max = from.has_max() ? from.max() : infinity};
  if (!from.has_min() && !from.has_max()) return WrongRule(path, "give min or max, or both");
  double least = 0, greatest = 0;
  for (const std::string& name : SortedNames(from.sum())) {
    const std::string field = absl::StrCat(path, ".sum.", name);
    const auto axis = FindAxis(name);
    if (!axis.ok()) return WrongRule(path + ".sum", Message(axis.status()));
    const Axis& of = *axes_[*axis];
    if (of.categorical()) return WrongRule(field, "a categorical parameter has no numbers to add");
    const auto factor = ParseNumber(RuleText(from.sum().fields().at(name)));
    if (!factor || !std::isfinite(*factor) || *factor == 0) {
      return WrongRule(field, "must be a number to multiply it by, and not 0");
    }
    const double low = *factor * ValueAt(of, 0), high = *factor * ValueAt(of, 1);
    least += std::min(low, high);
    greatest += std::max(low, high);
    absl::StrAppend(&sum.words, TermWords(*factor, name, sum.terms.empty()));
    sum.terms.push_back({*axis, *factor});
  }
  if (!std::isfinite(least) || !std::isfinite(greatest)) {
    return WrongRule(path + ".sum", "is too large for a number: give smaller factors");
  }
  if (sum.min > sum.max || sum.min > greatest || sum.max < least) {
    return WrongRule(path, absl::StrCat("is never within its bounds: the sum goes from ",
                                        FormatNumber(least), " to ", FormatNumber(greatest)));
  }
  if (from.has_min()) absl::StrAppend(&sum.words, " ≥ ", FormatNumber(sum.min));
  if (from.has_max()) absl::StrAppend(&sum.words, " ≤ ", FormatNumber(sum.max));
  return sum;
}

StatusOr<RuleTests> RuleReader::ReadTests(const Struct& from, const std::string& path) const {
  if (from.fields().empty()) {
    return WrongRule(path,
                     "is empty: give parameters with their values, such as {optimizer: [sgd]}");
  }
  RuleTests tests;
  for (const std::string& name : SortedNames(from)) {
    const auto axis = FindAxis(name);
    if (!axis.ok()) return WrongRule(path, Message(axis.status()));
    auto test = ReadTest(*axis, from.fields().at(name));
    if (!test.ok()) return WrongRule(absl::StrCat(path, ".", name), Message(test.status()));
    tests.push_back(*std::move(test));
  }
  return tests;
}

StatusOr<RuleTest> RuleReader::ReadTest(int axis, const Value& from) const {
  if (from.has_struct_value()) return ReadFields(axis, from.struct_value());
  if (!from.has_list_value()) return ReadList(axis, {from});
  const auto& values = from.list_value().values();
  return ReadList(axis, {values.begin(), values.end()});
}

StatusOr<RuleTest> RuleReader::ReadFields(int axis, const Struct& from) const {
  const auto listed = from.fields().find("in");
  if (listed == from.fields().end()) return ReadRange(axis, from);
  if (from.fields().size() > 1 || !listed->second.has_list_value()) {
    return absl::InvalidArgumentError("\"in\" has a list of values, and nothing stands beside it");
  }
  return ReadTest(axis, listed->second);
}

StatusOr<RuleTest> RuleReader::ReadList(int axis, const std::vector<Value>& values) const {
  const Axis& of = *axes_[axis];
  if (of.continuous()) {
    return absl::InvalidArgumentError(
        "a continuous parameter hardly ever has one of some values: give {min: …, max: …}");
  }
  if (values.empty()) return absl::InvalidArgumentError("the list is empty: give its values");
  RuleTest test{.axis = axis, .listed = true};
  std::vector<std::string> words;
  for (const Value& value : values) {
    if (!value.has_number_value() && !value.has_string_value()) {
      return absl::InvalidArgumentError("must be numbers or texts, or {min: …, max: …}");
    }
    ASSIGN_OR_RETURN(const double x, of.Encode(TypedValue(of, value)));
    test.levels.push_back(of.Level(x));
    words.push_back(RuleText(value));
  }
  StableSort(test.levels);
  test.words = absl::StrCat(of.name(), " is ", absl::StrJoin(words, " or "));
  return test;
}

StatusOr<RuleTest> RuleReader::ReadRange(int axis, const Struct& from) const {
  const Axis& of = *axes_[axis];
  if (of.categorical()) {
    return absl::InvalidArgumentError("a categorical parameter has no range: list its values");
  }
  double min = -std::numeric_limits<double>::infinity(), max = -min;
  RuleTest test{.axis = axis, .words = of.name()};
  for (const char* name : {"min", "max"}) {
    const auto found = from.fields().find(name);
    if (found == from.fields().end()) continue;
    const auto number = ParseNumber(RuleText(found->second));
    if (!number) return absl::InvalidArgumentError(absl::StrCat(name, " must be a number"));
    (name[1] == 'i' ? min : max) = *number;
    absl::StrAppend(&test.words, name[1] == 'i' ? " ≥ " : " ≤ ", FormatNumber(*number));
  }
  if (from.fields().empty() ||
      from.fields().size() !=
          static_cast<size_t>(from.fields().contains("min") + from.fields().contains("max"))) {
    return absl::InvalidArgumentError("a range has min or max, or both, and nothing else");
  }
  const double least = ValueAt(of, 0), greatest = ValueAt(of, 1);
  bool none = min > max || min > greatest || max < least;
  if (of.continuous() && !none) {
    v1::Assignment end;
    end.set_number(std::max(min, least));
    ASSIGN_OR_RETURN(test.from, of.Encode(end));
    end.set_number(std::min(max, greatest));
    ASSIGN_OR_RETURN(test.to, of.Encode(end));
  } else if (!none) {
    const uint64_t first = LevelsBelow(of, min, false), end = LevelsBelow(of, max, true);
    none = first >= end;
    if (!none) test.from = of.Coordinate(first);
    if (!none) test.to = of.Coordinate(end - 1);
  }
  if (!none) return test;
  return absl::InvalidArgumentError(absl::StrCat("no value of it is there: it goes from ",
                                                 FormatNumber(least), " to ",
                                                 FormatNumber(greatest)));
}

}  // namespace shirabe::suggestion
