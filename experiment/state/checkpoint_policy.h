// Which of a trial's checkpoints to go on from, and which to keep. Pure functions over records; the
// files are the executor's.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::experiment {

// What `gone` says of a checkpoint that was not kept.
inline constexpr char kPruned[] = "pruned";

// Those that are still there, the newest first: by step, and of one step the latest attempt's.
// `at_most` bounds the step (a parent's, at the step that was asked for); 0 = no bound.
std::vector<v1::Checkpoint> Candidates(const std::vector<v1::Checkpoint>& all, int64_t at_most);

// What the policy does not keep: neither among the latest nor among the best by objective, nor at
// a step in `pinned`, from which another trial may still start. Where copies are made, the newest
// that has one is kept too, and the next whose copy is under way: a machine may be lost at any
// time, and a program may save faster than a store takes it.
std::vector<v1::Checkpoint> SelectPrunable(const std::vector<v1::Checkpoint>& all,
                                           const v1::ExperimentSpec& spec,
                                           const std::set<int64_t>& pinned);

// How often to save where attempts that ran so long in all lost so many machines, so that what is
// done again stays below a twentieth of the time: half an interval is lost, on average. 0 = no
// preemption says anything yet.
double AdvisedSaveSeconds(double seconds, int64_t preemptions);

}  // namespace shirabe::experiment
