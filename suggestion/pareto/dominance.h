// Which results are better where there are several losses, or constraints that may be violated:
// fronts of what does not dominate each other, and how crowded their members are. Pure; any thread.
//
//   f   losses, minimised, finite, as many of each      v   constraint violation, 0 = none
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shirabe::suggestion {

struct Individual {
  int64_t trial = 0;  // index in the history
  std::vector<double> losses;
  double violation = 0;
};

// Constraint domination (Deb et al. 2002, definition 1): the one that violates less wins; of two
// that violate equally, the one that is better in some loss and worse in none.
bool Dominates(const Individual& a, const Individual& b);

// The best `count` individuals, best first, as NSGA-II chooses survivors: by front, within a front
// the lonely ones first, which are those of greatest crowding distance (Deb et al. 2002, §III).
// Equals in the order given.
std::vector<Individual> Survivors(std::vector<Individual> individuals, size_t count);

// The losses' ranks among all in place of the losses, which may be infinite then: equals share one.
// It changes which are lonely, and nothing else.
void ReplaceByRanks(std::vector<Individual>& individuals);

// Where one of them stands among all: how many are surely better, being on a front before its own,
// or on its own and lonelier. Who is best in one loss of all is behind nothing on the first front.
struct FrontPlace {
  size_t front = 0;  // of its own, from 0
  size_t better = 0;
};
FrontPlace PlaceOf(size_t which, const std::vector<Individual>& individuals);

// Those that none of the others dominates, in the order of the trials; equals are all there.
std::vector<Individual> FirstFront(const std::vector<Individual>& individuals);

}  // namespace shirabe::suggestion
