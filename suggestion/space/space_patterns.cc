#include "suggestion/space/space_patterns.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace shirabe::suggestion {
namespace {

// Of one parameter that rules ask about, levels times questions; and questions in all.
constexpr uint64_t kMaxAnswers = 1'000'000;
constexpr uint64_t kMaxWork = 50'000'000;
constexpr size_t kMaxPatterns = 20'000;

}  // namespace

SpacePatterns::SpacePatterns(const Axes& axes, const SpaceRules& rules)
    : axes_(axes), rules_(rules), asked_(rules.Asked()) {}

std::optional<SpacePatterns> SpacePatterns::Count(const Axes& axes, const SpaceRules& rules) {
  SpacePatterns patterns(axes, rules);
  for (const int axis : patterns.asked_) {
    if (axes[axis]->continuous() ||
        axes[axis]->levels() > kMaxAnswers / rules.CountQuestions(axis)) {
      return std::nullopt;
    }
    absl::flat_hash_map<std::vector<bool>, int> known;
    std::vector<Levels> groups;
    std::vector<int>& group_of = patterns.group_of_.emplace_back();
    for (std::vector<bool>& answers : rules.Answers(axis)) {
      const auto next = static_cast<int>(groups.size());
      const int group =
          rules.IsSummed(axis) ? next : known.try_emplace(std::move(answers), next).first->second;
      if (group == next) groups.emplace_back();
      groups[group].push_back(group_of.size());
      group_of.push_back(group);
    }
    patterns.groups_.push_back(std::move(groups));
  }
  std::vector<double> point;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    point.push_back(rules.neutral(static_cast<int>(axis)));
  }
  std::vector<int> groups;
  if (!patterns.Explore(point, groups)) return std::nullopt;
  return patterns;
}

// Every group of every axis that rules ask about, where it is active. False to give up.
bool SpacePatterns::Explore(std::vector<double>& point, std::vector<int>& groups) {
  work_ += 1 + rules_.CountQuestions();
  if (work_ > kMaxWork || patterns_.size() > kMaxPatterns) return false;
  const size_t next = groups.size();
  if (next == asked_.size()) return AddPattern(point, groups);
  const int axis = asked_[next];
  if (!rules_.Active(point)[axis]) {
    groups.push_back(-1);
    const bool counted = Explore(point, groups);
    groups.pop_back();
    return counted;
  }
  bool counted = true;
  for (size_t i = 0; i < groups_[next].size() && counted; ++i) {
    point[axis] = axes_[axis]->Coordinate(groups_[next][i][0]);
    groups.push_back(static_cast<int>(i));
    counted = Explore(point, groups);
    groups.pop_back();
  }
  point[axis] = rules_.neutral(axis);
  return counted;
}

bool SpacePatterns::AddPattern(const std::vector<double>& point, const std::vector<int>& groups) {
  if (!rules_.Allows(point)) return true;
  Pattern pattern{std::vector<const Levels*>(axes_.size()), rules_.Active(point)};
  for (size_t i = 0; i < asked_.size(); ++i) {
    if (groups[i] >= 0) pattern.levels[asked_[i]] = &groups_[i][groups[i]];
  }
  uint64_t count = 1;
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    const uint64_t levels = LevelsOf(pattern, axis);
    if (levels == 0 || __builtin_mul_overflow(count, levels, &count)) return false;
  }
  if (__builtin_add_overflow(this->count(), count, &count)) return false;
  pattern_of_.emplace(groups, patterns_.size());
  patterns_.push_back(std::move(pattern));
  ends_.push_back(count);
  return true;
}

// 0 = continuous.
uint64_t SpacePatterns::LevelsOf(const Pattern& pattern, size_t axis) const {
  if (!pattern.active[axis]) return 1;
  return pattern.levels[axis] == nullptr ? axes_[axis]->levels() : pattern.levels[axis]->size();
}

std::vector<double> SpacePatterns::At(uint64_t index) const {
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
  const auto at = static_cast<size_t>(end - ends_.begin());
  if (at > 0) index -= ends_[at - 1];
  const Pattern& pattern = patterns_[at];
  std::vector<double> point(axes_.size());
  for (size_t axis = axes_.size(); axis-- > 0;) {
    const uint64_t levels = LevelsOf(pattern, axis);
    const uint64_t place = index % levels;
    index /= levels;
    if (!pattern.active[axis]) {
      point[axis] = rules_.neutral(static_cast<int>(axis));
    } else {
      point[axis] = axes_[axis]->Coordinate(
          pattern.levels[axis] == nullptr ? place : (*pattern.levels[axis])[place]);
    }
  }
  return point;
}

uint64_t SpacePatterns::IndexOf(const std::vector<double>& point) const {
  const std::vector<bool> active = rules_.Active(point);
  std::vector<int> groups;
  for (size_t i = 0; i < asked_.size(); ++i) {
    const int axis = asked_[i];
    groups.push_back(active[axis] ? group_of_[i][axes_[axis]->Level(point[axis])] : -1);
  }
  const size_t at = pattern_of_.at(groups);
  const Pattern& pattern = patterns_[at];
  uint64_t index = 0;
  for (size_t axis = 0; axis < axes_.size(); ++axis) {
    if (!pattern.active[axis]) continue;
    uint64_t place = axes_[axis]->Level(point[axis]);
    if (const Levels* levels = pattern.levels[axis]) {
      place = std::lower_bound(levels->begin(), levels->end(), place) - levels->begin();
    }
    index = index * LevelsOf(pattern, axis) + place;
  }
  return index + (at == 0 ? 0 : ends_[at - 1]);
}

}  // namespace shirabe::suggestion
