#include "suggestion/space/space_rules.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"
#include "suggestion/space/axes.h"

namespace shirabe::suggestion {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr char kConditions[] = "spec.shirabe.conditions";
constexpr char kForbidden[] = "spec.shirabe.forbidden";

Status Wrong(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

std::string TextOf(const Value& value) {
  return value.has_number_value() ? FormatNumber(value.number_value()) : value.string_value();
}

v1::Assignment Typed(const Axis& axis, const Value& value) {
  v1::Assignment assignment;
  const auto number = ParseNumber(TextOf(value));
  if (!axis.categorical() && number) {
    assignment.set_number(*number);
  } else {
    assignment.set_category(TextOf(value));
  }
  return assignment;
}

double ValueAt(const Axis& axis, double x) { return NumberOf(axis.Decode(x)).value_or(0); }

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

// "optimizer is adam and layers ≥ 2": what all must hold.
template <class Tests>
std::string WordsOf(const Tests& tests) {
  return absl::StrJoin(tests, " and ",
                       [](std::string* out, const auto& test) { out->append(test.words); });
}

}  // namespace

bool SpaceRules::AreIn(const v1::ShirabeSpec& spec) {
  return spec.conditions_size() > 0 || spec.forbidden_size() > 0;
}

// ---- reading -----------------------------------------------------------------------------------

StatusOr<SpaceRules> SpaceRules::Create(const Axes& axes, const v1::ShirabeSpec& spec) {
  SpaceRules rules(axes);
  for (const auto& axis : axes) {
    rules.neutral_.push_back(axis->Canonical(axis->categorical() ? 0 : 0.5));
  }
  std::set<int> conditional;
  for (int i = 0; i < spec.conditions_size(); ++i) {
    const std::string path = absl::StrCat(kConditions, "[", i, "]");
    const auto axis = rules.FindAxis(spec.conditions(i).parameter());
    if (!axis.ok()) return Wrong(path + ".parameter", Message(axis.status()));
    if (!conditional.insert(*axis).second) {
      return Wrong(path + ".parameter", absl::StrCat("\"", spec.conditions(i).parameter(),
                                                     "\" has a condition already: write all that "
                                                     "must hold into one"));
    }
    ASSIGN_OR_RETURN(Tests when, rules.ReadTests(spec.conditions(i).when(), path + ".when"));
    rules.conditions_.push_back({*axis, std::move(when)});
  }
  for (int i = 0; i < spec.forbidden_size(); ++i) {
    const std::string path = absl::StrCat(kForbidden, "[", i, "]");
    ASSIGN_OR_RETURN(Tests tests, rules.ReadTests(spec.forbidden(i), path));
    rules.forbidden_.push_back(std::move(tests));
  }
  for (const Condition& condition : rules.conditions_) rules.questions_ += condition.when.size();
  for (const Tests& tests : rules.forbidden_) rules.questions_ += tests.size();
  RETURN_IF_ERROR(rules.Sort());
  return rules;
}

StatusOr<int> SpaceRules::FindAxis(const std::string& name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i]->name() == name) return static_cast<int>(i);
    names.push_back(axes_[i]->name());
  }
  const auto near = Nearest(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is not a parameter",
      near ? absl::StrCat("; did you mean \"", *near, "\"?") : ": name one of spec.parameters"));
}

StatusOr<SpaceRules::Tests> SpaceRules::ReadTests(const Struct& from,
                                                  const std::string& path) const {
  if (from.fields().empty()) {
    return Wrong(path, "is empty: give parameters with their values, such as {optimizer: [sgd]}");
  }
  // A map's order is arbitrary; that of the parameters is not.
  std::vector<std::string> names;
  for (const auto& [name, value] : from.fields()) names.push_back(name);
  std::sort(names.begin(), names.end());
  Tests tests;
  for (const std::string& name : names) {
    const auto axis = FindAxis(name);
    if (!axis.ok()) return Wrong(path, Message(axis.status()));
    auto test = ReadTest(*axis, from.fields().at(name));
    if (!test.ok()) return Wrong(absl::StrCat(path, ".", name), Message(test.status()));
    tests.push_back(*std::move(test));
  }
  return tests;
}

StatusOr<SpaceRules::Test> SpaceRules::ReadTest(int axis, const Value& from) const {
  if (from.has_struct_value()) return ReadRange(axis, from.struct_value());
  if (!from.has_list_value()) return ReadList(axis, {from});
  const auto& values = from.list_value().values();
  return ReadList(axis, {values.begin(), values.end()});
}

StatusOr<SpaceRules::Test> SpaceRules::ReadList(int axis, const std::vector<Value>& values) const {
  const Axis& of = *axes_[axis];
  if (of.continuous()) {
    return absl::InvalidArgumentError(
        "a continuous parameter hardly ever has one of some values: give {min: …, max: …}");
  }
  if (values.empty()) return absl::InvalidArgumentError("the list is empty: give its values");
  Test test{.axis = axis, .listed = true};
  std::vector<std::string> words;
  for (const Value& value : values) {
    if (!value.has_number_value() && !value.has_string_value()) {
      return absl::InvalidArgumentError("must be numbers or texts, or {min: …, max: …}");
    }
    ASSIGN_OR_RETURN(const double x, of.Encode(Typed(of, value)));
    test.levels.push_back(of.Level(x));
    words.push_back(TextOf(value));
  }
  std::sort(test.levels.begin(), test.levels.end());
  test.words = absl::StrCat(of.name(), " is ", absl::StrJoin(words, " or "));
  return test;
}

StatusOr<SpaceRules::Test> SpaceRules::ReadRange(int axis, const Struct& from) const {
  const Axis& of = *axes_[axis];
  if (of.categorical()) {
    return absl::InvalidArgumentError("a categorical parameter has no range: list its values");
  }
  double min = -std::numeric_limits<double>::infinity(), max = -min;
  Test test{.axis = axis, .words = of.name()};
  for (const char* name : {"min", "max"}) {
    const auto found = from.fields().find(name);
    if (found == from.fields().end()) continue;
    const auto number = ParseNumber(TextOf(found->second));
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

// Parents first: depth first, each after what it asks about.
Status SpaceRules::Sort() {
  const std::vector<Condition> all = std::move(conditions_);
  conditions_.clear();
  std::vector<int> state(all.size());
  for (size_t i = 0; i < all.size(); ++i) RETURN_IF_ERROR(Visit(all, i, state));
  return absl::OkStatus();
}

Status SpaceRules::Visit(const std::vector<Condition>& all, size_t index, std::vector<int>& state) {
  enum { kNew, kOpen, kDone };
  if (state[index] == kDone) return absl::OkStatus();
  if (state[index] == kOpen) {
    return Wrong(kConditions, absl::StrCat("\"", axes_[all[index].axis]->name(),
                                           "\" depends on itself through the conditions of others: "
                                           "remove one of them"));
  }
  state[index] = kOpen;
  for (const Test& test : all[index].when) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].axis == test.axis) RETURN_IF_ERROR(Visit(all, i, state));
    }
  }
  state[index] = kDone;
  conditions_.push_back(all[index]);
  return absl::OkStatus();
}

// ---- asking ------------------------------------------------------------------------------------

bool SpaceRules::Holds(const Test& test, const std::vector<double>& point) const {
  const double x = point[test.axis];
  if (!test.listed) return x >= test.from && x <= test.to;
  return std::binary_search(test.levels.begin(), test.levels.end(), axes_[test.axis]->Level(x));
}

bool SpaceRules::HoldsAll(const Tests& tests, const std::vector<double>& point,
                          const std::vector<bool>& active) const {
  return std::all_of(tests.begin(), tests.end(),
                     [&](const Test& test) { return active[test.axis] && Holds(test, point); });
}

std::vector<bool> SpaceRules::Active(const std::vector<double>& point) const {
  std::vector<bool> active(axes_.size(), true);
  for (const Condition& condition : conditions_) {
    active[condition.axis] = HoldsAll(condition.when, point, active);
  }
  return active;
}

void SpaceRules::Neutralize(std::vector<double>& point) const {
  if (conditions_.empty()) return;
  const std::vector<bool> active = Active(point);
  for (const Condition& condition : conditions_) {
    if (!active[condition.axis]) point[condition.axis] = neutral_[condition.axis];
  }
}

std::string SpaceRules::Forbids(const std::vector<double>& point) const {
  if (forbidden_.empty()) return "";
  const std::vector<bool> active = Active(point);
  for (const Tests& tests : forbidden_) {
    if (!HoldsAll(tests, point, active)) continue;
    return WordsOf(tests);
  }
  return "";
}

std::string SpaceRules::ConditionOf(int axis) const {
  for (const Condition& condition : conditions_) {
    if (condition.axis != axis) continue;
    return WordsOf(condition.when);
  }
  return "";
}

// ---- what tells points apart -------------------------------------------------------------------

std::vector<const SpaceRules::Test*> SpaceRules::TestsOf(int axis) const {
  std::vector<const Test*> found;
  const auto add = [&](const Tests& tests) {
    for (const Test& test : tests) {
      if (test.axis == axis) found.push_back(&test);
    }
  };
  for (const Condition& condition : conditions_) add(condition.when);
  for (const Tests& tests : forbidden_) add(tests);
  return found;
}

uint64_t SpaceRules::CountQuestions(int axis) const { return TestsOf(axis).size(); }

std::vector<int> SpaceRules::Asked() const {
  std::set<int> asked;
  const auto add = [&asked](const Tests& tests) {
    for (const Test& test : tests) asked.insert(test.axis);
  };
  for (const Condition& condition : conditions_) add(condition.when);
  for (const Tests& tests : forbidden_) add(tests);
  std::vector<int> sorted;
  const auto is_conditional = [this](int axis) {
    return std::any_of(conditions_.begin(), conditions_.end(),
                       [&](const Condition& condition) { return condition.axis == axis; });
  };
  for (const int axis : asked) {
    if (!is_conditional(axis)) sorted.push_back(axis);
  }
  for (const Condition& condition : conditions_) {
    if (asked.contains(condition.axis)) sorted.push_back(condition.axis);
  }
  return sorted;
}

std::vector<std::vector<bool>> SpaceRules::Answers(int axis) const {
  std::vector<std::vector<bool>> answers(axes_[axis]->levels());
  const std::vector<const Test*> tests = TestsOf(axis);
  std::vector<double> point = neutral_;
  for (uint64_t level = 0; level < axes_[axis]->levels(); ++level) {
    point[axis] = axes_[axis]->Coordinate(level);
    for (const Test* test : tests) answers[level].push_back(Holds(*test, point));
  }
  return answers;
}

}  // namespace shirabe::suggestion
