// What restricts a space beside the ranges of its parameters: conditions (a parameter exists only
// with certain values of others) and forbidden combinations (spec.shirabe.conditions, .forbidden).
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

namespace shirabe::suggestion {

using Axes = std::vector<std::shared_ptr<const Axis>>;  // shared with the space

// Immutable once made; any thread may use it. Points have a canonical coordinate for every axis
// (Axis::Canonical), be it active or not.
class SpaceRules {
 public:
  // kInvalidArgument as "FIELD: what and the fix": no such parameter, a value that it does not
  // have, conditions in a circle, or one that never holds.
  static StatusOr<SpaceRules> Create(const Axes& axes, const v1::ShirabeSpec& spec);
  // Whether there is any rule.
  static bool AreIn(const v1::ShirabeSpec& spec);

  // By axis: whether the parameter exists at this point.
  std::vector<bool> Active(const std::vector<double>& point) const;
  // Gives inactive parameters the coordinate that stands for none.
  void Neutralize(std::vector<double>& point) const;
  // The forbidden combination that the point has, in words; "" = none.
  std::string Forbids(const std::vector<double>& point) const;
  // When the parameter exists, in words; "" = always.
  std::string ConditionOf(int axis) const;

  // The axes whose values decide, parents before their children.
  std::vector<int> Asked() const;
  // How many questions rules ask about an axis (≥ 1 for one of these), or in all.
  uint64_t CountQuestions(int axis) const;
  uint64_t CountQuestions() const { return questions_; }
  // By level of such an axis, the answers to them.
  std::vector<std::vector<bool>> Answers(int axis) const;
  double neutral(int axis) const { return neutral_[axis]; }

 private:
  // Whether a parameter has one of some values.
  struct Test {
    int axis = 0;
    bool listed = false;
    std::vector<uint64_t> levels = {};  // listed: ascending
    double from = 0, to = 1;            // else: coordinates
    std::string words = {};             // "optimizer is adam", for messages
  };
  using Tests = std::vector<Test>;  // all of them; an inactive parameter has no value
  struct Condition {
    int axis = 0;
    Tests when;
  };

  explicit SpaceRules(const Axes& axes) : axes_(axes) {}

  StatusOr<int> FindAxis(const std::string& name) const;
  StatusOr<Tests> ReadTests(const google::protobuf::Struct& from, const std::string& path) const;
  StatusOr<Test> ReadTest(int axis, const google::protobuf::Value& from) const;
  StatusOr<Test> ReadRange(int axis, const google::protobuf::Struct& from) const;
  StatusOr<Test> ReadList(int axis, const std::vector<google::protobuf::Value>& values) const;
  Status Sort();
  Status Visit(const std::vector<Condition>& all, size_t index, std::vector<int>& state);
  bool Holds(const Test& test, const std::vector<double>& point) const;
  bool HoldsAll(const Tests& tests, const std::vector<double>& point,
                const std::vector<bool>& active) const;
  std::vector<const Test*> TestsOf(int axis) const;

  Axes axes_;
  std::vector<double> neutral_;        // by axis
  std::vector<Condition> conditions_;  // parents before their children
  std::vector<Tests> forbidden_;
  uint64_t questions_ = 0;
};

}  // namespace shirabe::suggestion
