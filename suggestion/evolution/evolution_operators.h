// How evolutionary algorithms make children and choose survivors. Pure functions of their
// arguments; any thread, each with an Rng of its own.
//
//   x, a, b   one coordinate of the unit interval        η   distribution index, as 1/η is spread
//   f         losses of an individual, minimised         v   its constraint violation, 0 = none
//   β, δ      spread factor of a crossover, step of a mutation
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "suggestion/algorithm.h"
#include "suggestion/history.h"

namespace shirabe::suggestion {

constexpr double kDistributionIndex = 20;

// The setting population_size, which has no default of its own, and its value: where it is not
// given √maxTrialCount, so that there are as many generations as individuals; at least 8, and 20
// for an experiment without a limit.
SettingInfo PopulationSetting(int least);
int PopulationSize(const Problem& problem);

// Simulated binary crossover within [0, 1] (Deb & Agrawal 1995; bounded as in Deb & Jain 2011):
// two children around two parents, as near to them as η is great.
std::pair<double, double> SimulatedBinary(double a, double b, Rng& rng);

// Polynomial mutation within [0, 1] (Deb & Goyal 1996).
double PolynomialMutation(double x, Rng& rng);

struct Individual {
  int64_t trial = 0;           // index in the history
  std::vector<double> losses;  // as many for each; one today
  double violation = 0;
};

// Every trial that has ended. What completed violates nothing; what was stopped early the less, the
// further it came, between 0 and 1; what failed, or has a loss that is no finite number, 1.
std::vector<Individual> EndedIndividuals(const History& history);

// Constraint domination (Deb et al. 2002, definition 1): the one that violates less wins; of two
// that violate equally, the one that is better in some loss and worse in none.
bool Dominates(const Individual& a, const Individual& b);

// The best `count` individuals, best first, as NSGA-II chooses survivors: by front, within a front
// the lonely ones first, which are those of greatest crowding distance (Deb et al. 2002, §III).
// Equals in the order given.
std::vector<Individual> Survivors(std::vector<Individual> individuals, size_t count);

}  // namespace shirabe::suggestion
