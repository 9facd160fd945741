// A population in training, as its trials tell it, and the explore step that moves a member
// (Perturb). Each member is a chain of trials, one a generation, each of which goes on from a
// checkpoint of the one before. Made again for each proposal from points and labels; the history
// must outlive it. One thread.
//
// Trials without a label (start points, trials from elsewhere) are the first members. With several
// objectives, or constraints, the best of a generation are those of its front, the lonely ones
// first, then those of the next front (TrialOrder in suggestion/history.h). A trial that lies
// outside of ranges that were changed is no one's parent: its member takes over another's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "suggestion/history.h"
#include "suggestion/space/search_space.h"

namespace shirabe::suggestion {

struct PopulationOptions {
  int64_t size = 0;
  double truncation = 0;        // this part of a generation loses, at most half of it
  std::optional<int> resource;  // the axis whose levels are the generations
};

class Population {
 public:
  // What a member does next.
  struct Step {
    int64_t member = 0;
    int64_t generation = 0;         // that the new trial makes
    std::optional<int64_t> parent;  // index of the trial it goes on from; nullopt: it begins
    bool exploits = false;          // the parent is another member's
    std::string why;
  };

  Population(const History& history, const PopulationOptions& options);

  // Of all members that can go on, one that is behind the others; nullopt if all are training or
  // done. `rng` chooses whom a loser follows.
  std::optional<Step> Next(Rng& rng);

  int64_t active() const { return active_; }
  int64_t size() const { return static_cast<int64_t>(members_.size()); }

  static std::vector<std::pair<std::string, std::string>> Labels(const Step& step);

 private:
  struct Member {
    int64_t trial = -1;  // the latest
    int64_t generation = 0;
    bool busy = false;
  };
  // Which member goes on first: one that is behind, and of those the one that has waited longest.
  static bool Before(const Member& a, const Member& b) {
    return a.generation != b.generation ? a.generation < b.generation : a.trial < b.trial;
  }
  // The trials that made a generation.
  struct Generation {
    int64_t ended = 0;
    std::vector<int64_t> ranked;  // of them, those with a finite loss, best first
  };

  std::optional<int64_t> MemberOf(int64_t index) const;
  int64_t GenerationOf(int64_t index) const;
  std::optional<int64_t> Last() const;
  int64_t Losers(const Generation& generation) const;
  Step GoOn(int64_t member, Rng& rng) const;
  Step Follow(Step step, int64_t generation, Rng& rng) const;

  const History& history_;
  const TrialOrder order_;
  PopulationOptions options_;
  std::vector<Member> members_;
  std::map<int64_t, Generation> generations_;
  int64_t active_ = 0;
};

// The explore step of population-based training: a point near another one, as far as its
// parameters allow. Pure.
//
//   v    the value of a numeric parameter           in its own unit
//   v·f  the new one, f = 0.8 or 1.2, equally likely, where the range is above 0; else v ± a tenth
//        of the range, since no factor leads away from 0
//
// A step that would leave the range turns back. Integers, steps and lists go to the nearest of
// their values, or to the next one where that is where they are. A category has no neighbours: one
// in four times it becomes another one.

// Each parameter is drawn again with probability `resample`, else moved as above. nullopt, as in
// Katib, is never.
Point Perturb(const Space& space, const Point& point, std::optional<double> resample, Rng& rng);

}  // namespace shirabe::suggestion
