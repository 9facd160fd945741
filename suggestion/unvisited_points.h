// Points that have not been tried: what every algorithm must propose while there is one. One
// UnvisitedPoints serves one proposal, so that its own points count as tried; the history must
// outlive it.
//
// It always ends soon. Draws follow the distributions of the space; where the points drawn have
// all been tried, a finite space is walked along one cycle through all of its points, which meets
// an untried one after at most as many steps as there are tried ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/rng.h"
#include "suggestion/algorithm.h"
#include "suggestion/history.h"
#include "suggestion/sobol_sequence.h"

namespace shirabe::suggestion {

class UnvisitedPoints {
 public:
  explicit UnvisitedPoints(const History& history) : history_(history) {}

  // Takes `point` for this proposal; false if it has been tried or taken.
  bool Claim(const Point& point);
  // Takes a random point. nullopt if every point is taken, or, in a space that cannot be counted,
  // if many draws gave nothing new.
  std::optional<Point> Draw(Rng& rng);
  // Every point of a finite space is taken.
  bool Exhausted() const;

  // The outcome of a proposal of `suggestions`: exhausted, with the reason, if there are none.
  Proposal Finish(std::vector<Suggestion> suggestions) const;

 private:
  uint64_t Taken() const { return history_.distinct() + taken_.size(); }
  std::optional<Point> Walk(Rng& rng);
  std::optional<Point> DrawEvenly(Rng& rng);

  const History& history_;
  absl::flat_hash_set<uint64_t> taken_;  // Space::Key of this proposal's points
};

// The first points of an experiment, before an algorithm knows anything: those of a scrambled Sobol
// sequence, which leave smaller gaps than random ones. Used by the algorithms that learn. Immutable
// after it is made; any thread.
class InitialDesign {
 public:
  explicit InitialDesign(int axes);

  // Takes point `ordinal` of the experiment, or a random one where that has been tried. nullopt if
  // `unvisited` has none left.
  std::optional<Suggestion> Next(const Space& space, uint64_t ordinal, const Rng& root,
                                 UnvisitedPoints& unvisited) const;

  // For an algorithm that has nothing better: a random point, with the reason in words.
  static std::optional<Suggestion> RandomFallback(Rng rng, UnvisitedPoints& unvisited,
                                                  const std::string& reason);

 private:
  std::optional<SobolSequence> sobol_;  // none where there are more axes than it has dimensions
};

}  // namespace shirabe::suggestion
