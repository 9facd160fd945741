// Draws the experiment, the machines and the misfortunes of one seed. The same seed gives the same.
#pragma once

#include <cstdint>
#include <optional>

#include "proto/shirabe/v1/experiment.pb.h"
#include "tests/simulation/world.h"

namespace shirabe::simulation {

// Which of its faults a run has.
enum class Faults {
  kNone,        // the same experiment, undisturbed
  kPreemption,  // only what the platform does to attempts, and no limit to what it may
  kAll,
};

// Whether the algorithm of this seed looks at results, so that what it tries follows from what
// ended first: successive halving and populations, whose trials go on from each other's
// checkpoints, and models. Undisturbed or with kPreemption, their trials run one at a time.
bool IsAdaptive(uint64_t seed);
// Whether its objective is to be maximised. A mirrored experiment has the other sense and all
// values negated.
bool Maximises(uint64_t seed);
v1::Experiment DrawExperiment(uint64_t seed, const ExperimentKey& key, Faults faults,
                              bool mirrored = false);
// Pools of machines; none for some seeds.
v1::NodePools DrawPools(uint64_t seed);
Hazards DrawHazards(uint64_t seed, Faults faults);
// What its user wants of it besides pausing and scaling, by the step at which it is asked for; 0 =
// never.
struct Wishes {
  int stop_at = 0, cancel_at = 0, delete_at = 0;
  // Once it has ended: that many trials more, or other counts without more (0).
  std::optional<int> more_trials;
};
Wishes DrawWishes(uint64_t seed, Faults faults);
// What the code of a trial does. One that goes on from a parent trains for longer than it: until
// the resource that it was given, or for a while where it was given none.
Training DrawTraining(uint64_t seed, const v1::Trial& trial, int64_t parent_steps, Faults faults);

}  // namespace shirabe::simulation
