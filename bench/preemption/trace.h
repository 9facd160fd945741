// What a trace of reclaims costs at least, and what it costs those who keep no checkpoints.
// Replayed directly, without a controller. Times in seconds.
#pragma once

#include <cstdint>
#include <string>

namespace shirabe::bench {

// The work: `trials` of `training` seconds each on `slots` machines.
struct Load {
  int trials = 20;
  int slots = 4;
  double training = 7200;
  double startup = 20;  // before the first step of every attempt
  double step = 10;
  double save = 10;  // what a checkpoint takes
  double returns_after = 60;
  double reclaims_per_hour = 1;  // of a machine
  double notice = 0;
  uint64_t seed = 7;
};

// The interval between checkpoints after Young (1974): sqrt(2 × save / rate), in whole steps.
double YoungInterval(const Load& load);

// What one reclaim wastes on average, however good the controller: the seconds that the attempt
// which it ends ran for nothing. Reclaims are a Poisson stream of rate λ; of one that falls into a
// period of length t the mean place is E(t) = 1/λ − t/(e^λt − 1), t/2 for small λt.
//
// An attempt of startup u is hit during it with probability 1 − e^−λu, and loses E(u). Else it
// loses u and, of its training, which has a checkpoint every T = interval + save:
//   with a notice of at least `save` it saves what it has: lost are the save and half a step, but
//   nothing where it was saving anyway (save/T of the time);
//   with less, everything since the last checkpoint, and the notice: E(T) + notice.
double FloorPerReclaim(const Load& load);

struct Baseline {
  int finished = 0;  // trials
  int failed = 0;
  double ran = 0;     // machine seconds
  double wasted = 0;  // of them
  double hours = 0;   // until the end, or until given up
};

// Every reclaim starts the trial over. Given up after `limit_hours`.
Baseline FromScratch(const Load& load, double limit_hours);

// Every reclaim fails its trial; the experiment fails once more than `max_failed` have.
Baseline AsFailure(const Load& load, int max_failed);

}  // namespace shirabe::bench
