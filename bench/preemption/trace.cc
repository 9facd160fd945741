#include "bench/preemption/trace.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"

namespace shirabe::bench {
namespace {

// One machine of the replay: its own Poisson stream of reclaims, hitting only what runs on it.
struct Machine {
  Rng trace;
  double next = 0;  // reclaim
  double free = 0;  // from when on it can be used

  double After(double time, double per_hour) {
    while (next <= time) next += -std::log(1 - trace.Uniform()) / per_hour * 3600;
    return next;
  }
};

std::vector<Machine> Machines(const Load& load) {
  std::vector<Machine> machines;
  for (int i = 0; i < load.slots; ++i) {
    machines.push_back({.trace = Rng(Mix(load.seed, static_cast<uint64_t>(i)))});
  }
  return machines;
}

Machine& FirstFree(std::vector<Machine>& machines) {
  return *std::min_element(machines.begin(), machines.end(),
                           [](const Machine& a, const Machine& b) { return a.free < b.free; });
}

// Runs one attempt of a whole training; whether it came to its end.
bool Attempt(const Load& load, Machine& machine, Baseline& sums) {
  const double start = machine.free;
  const double end = start + load.startup + load.training;
  const double reclaim = machine.After(start, load.reclaims_per_hour) + load.notice;
  const bool finished = end <= reclaim;
  const double ran = std::min(end, reclaim) - start;
  sums.ran += ran;
  if (!finished) sums.wasted += ran;
  machine.free = start + ran + (finished ? 0 : load.returns_after);
  sums.hours = std::max(sums.hours, (start + ran) / 3600);
  return finished;
}

}  // namespace

double YoungInterval(const Load& load) {
  const double seconds = std::sqrt(2 * load.save / (load.reclaims_per_hour / 3600));
  return std::max(1.0, std::round(seconds / load.step)) * load.step;
}

double FloorPerReclaim(const Load& load) {
  const double rate = load.reclaims_per_hour / 3600;
  const auto mean_place = [rate](double t) { return 1 / rate - t / std::expm1(rate * t); };
  const double period = YoungInterval(load) + load.save;
  const bool saves = load.notice >= load.save;
  const double lost = saves ? (load.save + load.step / 2) * (1 - load.save / period)
                            : mean_place(period) + load.notice;
  const double in_startup = -std::expm1(-rate * load.startup);
  return in_startup * mean_place(load.startup) + (1 - in_startup) * (load.startup + lost);
}

Baseline FromScratch(const Load& load, double limit_hours) {
  std::vector<Machine> machines = Machines(load);
  Baseline sums;
  while (sums.finished < load.trials) {
    Machine& machine = FirstFree(machines);
    if (machine.free > limit_hours * 3600) break;
    if (Attempt(load, machine, sums)) ++sums.finished;
  }
  return sums;
}

Baseline AsFailure(const Load& load, int max_failed) {
  std::vector<Machine> machines = Machines(load);
  Baseline sums;
  while (sums.finished + sums.failed < load.trials && sums.failed <= max_failed) {
    ++(Attempt(load, FirstFree(machines), sums) ? sums.finished : sums.failed);
  }
  return sums;
}

}  // namespace shirabe::bench
