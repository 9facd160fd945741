// How evolutionary algorithms make children and choose survivors. Pure functions of their
// arguments; any thread, each with an Rng of its own.
//
//   x, a, b   one coordinate of the unit interval        η   distribution index, as 1/η is spread
//   β, δ      spread factor of a crossover, step of a mutation
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "suggestion/algorithm.h"
#include "suggestion/history.h"
#include "suggestion/pareto/dominance.h"

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

// What differential evolution has learned from its own trials: the population, and which control
// parameters have succeeded. Rebuilt from the history whenever it is needed, so that a restart
// loses nothing; a value type.
//
//   N    slots of the population            F    scale of a difference, in (0, 1]
//   H    entries of the memory, a ring      CR   probability of a coordinate to be crossed, [0, 1]
//   M_F, M_CR   the memory's means, H each  S_F, S_CR   those of the children that won, N trials
//
//   M_F[k]  ← Σ F² / Σ F over S_F           the Lehmer mean: it prefers the large (eq. 14)
//   M_CR[k] ← the mean of S_CR              (eq. 13)
//
// Tanabe & Fukunaga, "Success-history based parameter adaptation for differential evolution"
// (2013). There, a generation ends when N children have been judged, and successes weigh by how
// much was gained; here whenever N trials have ended, in the order of creation, and they weigh
// equally, as in JADE (Zhang & Sanderson 2009), so that the scale of the losses does not matter.

// How a child was made; kept in a label of its trial.
struct ControlParameters {
  static constexpr char kLabel[] = "de";
  int slot = 0;  // whom it challenges
  double f = 0.5;
  double cr = 0.5;

  std::string Encode() const;
  // nullopt for anything else than what Encode gives for one of `slots`.
  static std::optional<ControlParameters> Decode(const std::string& text, int slots);
};

class SuccessHistory {
 public:
  // Plays the history. A child takes the slot that it challenged if it is not worse than who is
  // there; a trial without a label takes the slot of the worst if it is better.
  SuccessHistory(const History& history, int slots);

  // Trials of the slots that are taken, best first.
  const std::vector<int64_t>& ranked() const { return ranked_; }
  // The trial of a slot; nullopt while none of its trials has ended.
  std::optional<int64_t> occupant(int slot) const;
  // Trials that have lost a slot of late, at most N: where the population comes from.
  const std::vector<int64_t>& archive() const { return archive_; }
  // The slot that has been challenged least, whether its challengers have ended or not.
  int NextSlot() const;
  // A challenger of `slot` is on its way.
  void Challenge(int slot) { ++challenges_[slot]; }
  // F and CR for a child of `slot`, around one of the memory's means (§III-A).
  ControlParameters Draw(int slot, Rng& rng) const;

 private:
  struct Means {
    double f = 0.5;
    double cr = 0.5;
  };
  size_t PlaceFor(const std::optional<ControlParameters>& control) const;
  void Play(const Individual& individual, const std::optional<ControlParameters>& control);
  void Remember();

  std::vector<std::optional<Individual>> slots_;
  std::vector<int64_t> challenges_;
  std::vector<int64_t> archive_;
  std::vector<int64_t> ranked_;
  std::vector<Means> memory_;
  size_t next_ = 0;  // entry of the memory
  std::vector<ControlParameters> successes_;
  int64_t judged_ = 0;
};

}  // namespace shirabe::suggestion
