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

v1::Experiment DrawExperiment(uint64_t seed, const ExperimentKey& key, Faults faults);
// Pools of machines; none for some seeds.
v1::NodePools DrawPools(uint64_t seed);
Hazards DrawHazards(uint64_t seed, Faults faults);
// What the code of a trial does.
Training DrawTraining(uint64_t seed, int64_t trial, Faults faults);

}  // namespace shirabe::simulation
