// One call to a GPU, from when it begins to wait until its answer is there: between the thread that
// asks and the one that has the device (shared_gpu.h), each of which may be done with it first.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "suggestion/accelerator.h"
#include "suggestion/accelerator/gpu_session.h"

namespace shirabe::suggestion::accelerator {

// What was done so far, for metrics.
struct GpuCounts {
  int64_t uploads = 0, evaluations = 0, conditionings = 0, scorings = 0;
  int64_t batches = 0, scoring_batches = 0;  // calls that evaluations, that scorings went in
  int64_t largest = 0, largest_scoring = 0;  // of one of them
  int64_t failures = 0;                      // calls that the processor had to make up for
  int64_t waiting = 0;                       // now
  bool busy = false;                         // now
};

// Null where there is nothing.
inline double* OrNull(std::vector<double>& values) {
  return values.empty() ? nullptr : values.data();
}

// It owns all that the device reads and writes, because the caller may leave before it is done.
struct GpuJob {
  // What goes together with those of others; kNothing: `call` is made.
  enum class Together { kNothing, kEvaluations, kScorings };
  struct Item {  // an evaluation
    const gpu::DeviceModel* model = nullptr;
    int column = 0;
    std::vector<double> theta;
  };
  Together together = Together::kNothing;
  int64_t bytes = 0;  // on the device while it is at work, where it goes together
  std::vector<Item> items;
  std::vector<Accelerator::Answer> answers;
  std::function<Status(GpuSession&, GpuJob&)> call;
  int64_t GpuCounts::*kind = &GpuCounts::evaluations;

  int64_t count() const { return std::max<int64_t>(1, static_cast<int64_t>(items.size())); }
  // Of scorings.
  gpu::Scoring AsScoring() {
    return {.posterior = scored,
            .count = points,
            .x = OrNull(x),
            .u = OrNull(u),
            .mean = OrNull(scores.mean),
            .variance = OrNull(scores.variance),
            .mean_slopes = OrNull(scores.mean_slopes),
            .variance_slopes = OrNull(scores.variance_slope)};
  }

  const gpu::DevicePosterior* scored = nullptr;
  int64_t points = 0;
  std::vector<double> x, u, y, theta, inverse;
  std::optional<double> mean;
  Accelerator::Scores scores;
  gpu::DeviceModel* model = nullptr;          // made by it
  gpu::DevicePosterior* posterior = nullptr;  // made by it

  Status status;
  bool done = false, abandoned = false;  // guarded by the GPU's mutex
};

}  // namespace shirabe::suggestion::accelerator
