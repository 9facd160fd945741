// The first points of an experiment, before an algorithm knows anything: those of a scrambled Sobol
// sequence, which leave smaller gaps than random ones. Used by the algorithms that learn. Immutable
// after it is made; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/rng.h"
#include "suggestion/sobol_sequence.h"
#include "suggestion/unvisited.h"

namespace shirabe::suggestion {

class Start {
 public:
  explicit Start(int axes);

  // Takes point `ordinal` of the experiment, or a random one where that has been tried. nullopt if
  // `unvisited` has none left.
  std::optional<Suggestion> Next(const Space& space, uint64_t ordinal, const Rng& root,
                                 Unvisited& unvisited) const;

  // For an algorithm that has nothing better: a random point, with the reason in words.
  static std::optional<Suggestion> Anything(Rng rng, Unvisited& unvisited,
                                            const std::string& reason);

 private:
  std::optional<SobolSequence> sobol_;  // none where there are more axes than it has dimensions
};

}  // namespace shirabe::suggestion
