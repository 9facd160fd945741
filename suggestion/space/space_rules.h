// What restricts a space beside the ranges of its parameters (spec.shirabe.space): conditions (a
// parameter exists only with certain values of others), forbidden combinations, and bounds on sums.
// An inactive parameter has no value, and one coordinate whatever a point says there, so that
// points that differ in nothing else are the same. Used by search_space.h, which knows the codec.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/space/axis.h"
#include "suggestion/space/rule_reader.h"

namespace shirabe::suggestion {

// Immutable once made; any thread may use it. Points have a canonical coordinate for every axis
// (Axis::Canonical), be it active or not.
class SpaceRules {
 public:
  // kInvalidArgument as "FIELD: what and the fix": no such parameter, a value that it does not
  // have, conditions in a circle, a rule that never holds or a sum that is never within its bounds.
  static StatusOr<SpaceRules> Create(const Axes& axes, const v1::SpaceRules& spec);
  // Whether there is any rule.
  static bool AreIn(const v1::SpaceRules& spec);

  // By axis: whether the parameter exists at this point.
  std::vector<bool> Active(const std::vector<double>& point) const;
  // Gives inactive parameters the coordinate that stands for none.
  void Neutralize(std::vector<double>& point) const;
  // Whether the point has no forbidden combination, and its sums are within their bounds.
  bool Allows(const std::vector<double>& point) const;
  // Why it is not allowed, in words that name the field; "" = it is.
  std::string Forbids(const std::vector<double>& point) const;
  // When the parameter exists, in words; "" = always.
  std::string ConditionOf(int axis) const;

  // The axes whose values decide, parents before their children.
  std::vector<int> Asked() const;
  // Whether a sum has the axis: no two of its levels are alike then.
  bool IsSummed(int axis) const;
  // How many questions rules ask about an axis (≥ 1 for one of these), or in all.
  uint64_t CountQuestions(int axis) const;
  uint64_t CountQuestions() const { return questions_; }
  // By level of such an axis, the answers to them.
  std::vector<std::vector<bool>> Answers(int axis) const;
  double neutral(int axis) const { return neutral_[axis]; }

 private:
  explicit SpaceRules(const Axes& axes) : axes_(axes) {}

  Status Sort();
  Status Visit(const std::vector<RuleCondition>& all, size_t index, std::vector<int>& state);
  bool Holds(const RuleTest& test, const std::vector<double>& point) const;
  bool HoldsAll(const RuleTests& tests, const std::vector<double>& point,
                const std::vector<bool>& active) const;
  // The rule that the point breaks: a forbidden combination, or a sum.
  const RuleTests* BrokenTests(const std::vector<double>& point,
                               const std::vector<bool>& active) const;
  const RuleSum* BrokenSum(const std::vector<double>& point, const std::vector<bool>& active) const;
  double ValueOf(const RuleSum& sum, const std::vector<double>& point, double* rounding) const;
  template <class Function>
  void ForEachTest(const Function& function) const;

  Axes axes_;
  std::vector<double> neutral_;            // by axis
  std::vector<RuleCondition> conditions_;  // parents before their children
  std::vector<RuleTests> forbidden_;
  std::vector<RuleSum> sums_;
  uint64_t questions_ = 0;
};

}  // namespace shirabe::suggestion
