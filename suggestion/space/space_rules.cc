#include "suggestion/space/space_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/number.h"
#include "suggestion/space/axes.h"
#include "suggestion/space/rule_reader.h"

namespace shirabe::suggestion {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr char kConditions[] = "spec.shirabe.space.conditions";
constexpr char kForbidden[] = "spec.shirabe.space.forbidden";
constexpr char kLinear[] = "spec.shirabe.space.linear";
// Of the sum of what is added: 0.1 + 0.2 keeps a maximum of 0.3.
constexpr double kRounding = 1e-9;

// "optimizer is adam and layers ≥ 2": what all must hold.
std::string WordsOf(const RuleTests& tests) {
  return absl::StrJoin(tests, " and ",
                       [](std::string* out, const RuleTest& test) { out->append(test.words); });
}

}  // namespace

bool SpaceRules::AreIn(const v1::SpaceRules& spec) {
  return spec.conditions_size() > 0 || spec.forbidden_size() > 0 || spec.linear_size() > 0;
}

template <class Function>
void SpaceRules::ForEachTest(const Function& function) const {
  for (const RuleCondition& condition : conditions_) {
    for (const RuleTest& test : condition.when) function(test);
  }
  for (const RuleTests& tests : forbidden_) {
    for (const RuleTest& test : tests) function(test);
  }
}

// ---- reading -----------------------------------------------------------------------------------

StatusOr<SpaceRules> SpaceRules::Create(const Axes& axes, const v1::SpaceRules& spec) {
  SpaceRules rules(axes);
  const RuleReader reader(axes);
  for (const auto& axis : axes) {
    rules.neutral_.push_back(axis->Canonical(axis->categorical() ? 0 : 0.5));
  }
  WrongRules wrong;
  std::set<int> conditional;
  for (int i = 0; i < spec.conditions_size(); ++i) {
    const std::string path = absl::StrCat(kConditions, "[", i, "]");
    const auto axis = reader.FindAxis(spec.conditions(i).parameter());
    auto when = reader.ReadTests(spec.conditions(i).when(), path + ".when");
    if (!axis.ok()) {
      wrong.Check(WrongRule(path + ".parameter", Message(axis.status())));
    } else if (!conditional.insert(*axis).second) {
      wrong.Check(
          WrongRule(path + ".parameter", absl::StrCat("\"", spec.conditions(i).parameter(),
                                                      "\" has a condition already: write all that "
                                                      "must hold into one")));
    }
    if (wrong.Check(when.status()) && axis.ok()) {
      rules.conditions_.push_back({*axis, *std::move(when)});
    }
  }
  for (int i = 0; i < spec.forbidden_size(); ++i) {
    auto tests = reader.ReadTests(spec.forbidden(i), absl::StrCat(kForbidden, "[", i, "]"));
    if (wrong.Check(tests.status())) rules.forbidden_.push_back(*std::move(tests));
  }
  for (int i = 0; i < spec.linear_size(); ++i) {
    auto sum = reader.ReadSum(spec.linear(i), absl::StrCat(kLinear, "[", i, "]"));
    if (!wrong.Check(sum.status())) continue;
    rules.questions_ += sum->terms.size();
    rules.sums_.push_back(*std::move(sum));
  }
  RETURN_IF_ERROR(wrong.status());
  rules.ForEachTest([&rules](const RuleTest&) { ++rules.questions_; });
  RETURN_IF_ERROR(rules.Sort());
  return rules;
}

// Parents first: depth first, each after what it asks about.
Status SpaceRules::Sort() {
  const std::vector<RuleCondition> all = std::move(conditions_);
  conditions_.clear();
  std::vector<int> state(all.size());
  for (size_t i = 0; i < all.size(); ++i) RETURN_IF_ERROR(Visit(all, i, state));
  return absl::OkStatus();
}

Status SpaceRules::Visit(const std::vector<RuleCondition>& all, size_t index,
                         std::vector<int>& state) {
  enum { kNew, kOpen, kDone };
  if (state[index] == kDone) return absl::OkStatus();
  if (state[index] == kOpen) {
    return WrongRule(kConditions,
                     absl::StrCat("\"", axes_[all[index].axis]->name(),
                                  "\" depends on itself through the conditions of others: "
                                  "remove one of them"));
  }
  state[index] = kOpen;
  for (const RuleTest& test : all[index].when) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].axis == test.axis) RETURN_IF_ERROR(Visit(all, i, state));
    }
  }
  state[index] = kDone;
  conditions_.push_back(all[index]);
  return absl::OkStatus();
}

// ---- asking ------------------------------------------------------------------------------------

bool SpaceRules::Holds(const RuleTest& test, const std::vector<double>& point) const {
  const double x = point[test.axis];
  if (!test.listed) return x >= test.from && x <= test.to;
  return std::binary_search(test.levels.begin(), test.levels.end(), axes_[test.axis]->Level(x));
}

bool SpaceRules::HoldsAll(const RuleTests& tests, const std::vector<double>& point,
                          const std::vector<bool>& active) const {
  return std::all_of(tests.begin(), tests.end(),
                     [&](const RuleTest& test) { return active[test.axis] && Holds(test, point); });
}

std::vector<bool> SpaceRules::Active(const std::vector<double>& point) const {
  std::vector<bool> active(axes_.size(), true);
  for (const RuleCondition& condition : conditions_) {
    active[condition.axis] = HoldsAll(condition.when, point, active);
  }
  return active;
}

void SpaceRules::Neutralize(std::vector<double>& point) const {
  if (conditions_.empty()) return;
  const std::vector<bool> active = Active(point);
  for (const RuleCondition& condition : conditions_) {
    if (!active[condition.axis]) point[condition.axis] = neutral_[condition.axis];
  }
}

const RuleTests* SpaceRules::BrokenTests(const std::vector<double>& point,
                                         const std::vector<bool>& active) const {
  for (const RuleTests& tests : forbidden_) {
    if (HoldsAll(tests, point, active)) return &tests;
  }
  return nullptr;
}

double SpaceRules::ValueOf(const RuleSum& sum, const std::vector<double>& point,
                           double* rounding) const {
  double value = 0;
  *rounding = 0;
  for (const RuleTerm& term : sum.terms) {
    const double part = term.factor * ValueAt(*axes_[term.axis], point[term.axis]);
    value += part;
    *rounding += kRounding * std::abs(part);
  }
  return value;
}

const RuleSum* SpaceRules::BrokenSum(const std::vector<double>& point,
                                     const std::vector<bool>& active) const {
  for (const RuleSum& sum : sums_) {
    const bool asked = std::all_of(sum.terms.begin(), sum.terms.end(),
                                   [&](const RuleTerm& term) { return active[term.axis]; });
    double rounding = 0;
    if (!asked) continue;
    const double value = ValueOf(sum, point, &rounding);
    if (value < sum.min - rounding || value > sum.max + rounding) return &sum;
  }
  return nullptr;
}

bool SpaceRules::Allows(const std::vector<double>& point) const {
  if (forbidden_.empty() && sums_.empty()) return true;
  const std::vector<bool> active = Active(point);
  return BrokenTests(point, active) == nullptr && BrokenSum(point, active) == nullptr;
}

std::string SpaceRules::Forbids(const std::vector<double>& point) const {
  const std::vector<bool> active = Active(point);
  if (const RuleTests* tests = BrokenTests(point, active)) {
    return absl::StrCat("it is forbidden that ", WordsOf(*tests), " (", kForbidden, ")");
  }
  const RuleSum* sum = BrokenSum(point, active);
  if (sum == nullptr) return "";
  double rounding = 0;
  return absl::StrCat("it must be that ", sum->words, ", and the sum is ",
                      FormatNumber(ValueOf(*sum, point, &rounding)), " (", kLinear, ")");
}

std::string SpaceRules::ConditionOf(int axis) const {
  for (const RuleCondition& condition : conditions_) {
    if (condition.axis != axis) continue;
    return WordsOf(condition.when);
  }
  return "";
}

// ---- what tells points apart -------------------------------------------------------------------

bool SpaceRules::IsSummed(int axis) const {
  return std::any_of(sums_.begin(), sums_.end(), [axis](const RuleSum& sum) {
    return std::any_of(sum.terms.begin(), sum.terms.end(),
                       [axis](const RuleTerm& term) { return term.axis == axis; });
  });
}

uint64_t SpaceRules::CountQuestions(int axis) const {
  uint64_t count = IsSummed(axis) ? 1 : 0;
  ForEachTest([&](const RuleTest& test) { count += test.axis == axis ? 1 : 0; });
  return count;
}

std::vector<int> SpaceRules::Asked() const {
  std::set<int> asked;
  ForEachTest([&asked](const RuleTest& test) { asked.insert(test.axis); });
  for (const RuleSum& sum : sums_) {
    for (const RuleTerm& term : sum.terms) asked.insert(term.axis);
  }
  std::vector<int> sorted;
  const auto is_conditional = [this](int axis) {
    return std::any_of(conditions_.begin(), conditions_.end(),
                       [&](const RuleCondition& condition) { return condition.axis == axis; });
  };
  for (const int axis : asked) {
    if (!is_conditional(axis)) sorted.push_back(axis);
  }
  for (const RuleCondition& condition : conditions_) {
    if (asked.contains(condition.axis)) sorted.push_back(condition.axis);
  }
  return sorted;
}

std::vector<std::vector<bool>> SpaceRules::Answers(int axis) const {
  std::vector<std::vector<bool>> answers(axes_[axis]->levels());
  std::vector<const RuleTest*> tests;
  ForEachTest([&](const RuleTest& test) {
    if (test.axis == axis) tests.push_back(&test);
  });
  std::vector<double> point = neutral_;
  for (uint64_t level = 0; level < axes_[axis]->levels(); ++level) {
    point[axis] = axes_[axis]->Coordinate(level);
    for (const RuleTest* test : tests) answers[level].push_back(Holds(*test, point));
  }
  return answers;
}

}  // namespace shirabe::suggestion
