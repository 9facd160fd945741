// Counts what happened in simulated runs, so that a test can tell that its faults do occur: an
// invariant that nothing ever threatens says nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "db/store.h"
#include "tests/simulation/world.h"

namespace shirabe::simulation {

using Tally = std::map<std::string, int64_t>;

// Adds a run that is over.
void Count(const ExperimentKey& key, db::Store& store, World& world, Tally& tally);

// What every long series of runs must have met.
inline constexpr const char* kExpected[] = {"attempts completed",
                                            "attempts preempted-spot",
                                            "attempts preempted-node",
                                            "attempts unknown",
                                            "attempts app-error",
                                            "attempts yielded",
                                            "attempts suspended",
                                            "attempts given up",
                                            "attempts experiment-ended",
                                            "attempts early-stopped",
                                            "early stops of what was done",
                                            "early stops of what was preempted",
                                            "early stops after an earlier attempt",
                                            "checkpoints committed",
                                            "checkpoints pruned",
                                            "checkpoints found damaged",
                                            "checkpoints refused",
                                            "resumed",
                                            "restarted from 0",
                                            "told late where they began",
                                            "fell back to an older one",
                                            "finished although noticed",
                                            "zombies that reported",
                                            "zombies that saved",
                                            "budgets reached",
                                            "trials killed",
                                            "trials failed",
                                            "on-demand after spot",
                                            "done twice",
                                            "trials of a parent",
                                            "started from a parent",
                                            "started without the parent's checkpoint",
                                            "went back to the parent",
                                            "parents' checkpoints found damaged"};

}  // namespace shirabe::simulation
