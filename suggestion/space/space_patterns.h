// Counts the points of a space with rules, and numbers them. Points are of one pattern where the
// same parameters are active, and no rule can tell apart those of their values that rules ask
// about (every value of a parameter that is summed is told apart); a pattern is a product again.
// Used by search_space.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "suggestion/space/space_rules.h"

namespace shirabe::suggestion {

// Immutable once made; any thread may use it.
class SpacePatterns {
 public:
  // nullopt where a continuous parameter is active somewhere, the count does not fit 64 bits, or
  // counting would take long: more than 20,000 patterns, say.
  static std::optional<SpacePatterns> Count(const Axes& axes, const SpaceRules& rules);
  SpacePatterns(SpacePatterns&&) = default;  // not copied: patterns point to groups

  // Of allowed points; 0 where everything is forbidden.
  uint64_t count() const { return ends_.empty() ? 0 : ends_.back(); }
  // Point `index` < count(), canonical; within a pattern the last parameter varies fastest.
  std::vector<double> At(uint64_t index) const;
  // The reverse, of a canonical point that is allowed.
  uint64_t IndexOf(const std::vector<double>& point) const;

 private:
  using Levels = std::vector<uint64_t>;  // ascending
  struct Pattern {
    // By axis: the levels that it has, of the groups below; null = all of them.
    std::vector<const Levels*> levels;
    std::vector<bool> active;
  };

  SpacePatterns(const Axes& axes, const SpaceRules& rules);
  bool Explore(std::vector<double>& point, std::vector<int>& groups);
  bool AddPattern(const std::vector<double>& point, const std::vector<int>& groups);
  uint64_t LevelsOf(const Pattern& pattern, size_t axis) const;

  Axes axes_;
  SpaceRules rules_;
  std::vector<int> asked_;  // axes, parents first
  // By place in asked_: groups of levels that every rule answers alike, and the group of a level.
  std::vector<std::vector<Levels>> groups_;
  std::vector<std::vector<int>> group_of_;
  std::vector<Pattern> patterns_;
  std::vector<uint64_t> ends_;                                // of the patterns, as indices
  absl::flat_hash_map<std::vector<int>, size_t> pattern_of_;  // by group of each; -1: inactive
  uint64_t work_ = 0;
};

}  // namespace shirabe::suggestion
