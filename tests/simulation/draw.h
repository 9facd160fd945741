// Draws the experiment, the machines and the misfortunes of one seed. The same seed gives the same.
#pragma once

#include <cstdint>

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
v1::Experiment DrawExperiment(uint64_t seed, const ExperimentKey& key, Faults faults);
// Pools of machines; none for some seeds.
v1::NodePools DrawPools(uint64_t seed);
Hazards DrawHazards(uint64_t seed, Faults faults);
// What the code of a trial does. One that goes on from a parent trains for longer than it: until
// the resource that it was given, or for a while where it was given none.
Training DrawTraining(uint64_t seed, const v1::Trial& trial, int64_t parent_steps, Faults faults);

}  // namespace shirabe::simulation
