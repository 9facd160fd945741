// One GPU for all threads that compute suggestions. Whatever waits at the same time goes together:
// evaluations of different fits in one call, scorings by different processes in another, the rest
// one after another. A thread of its own makes all calls, so that a driver that hangs holds up none
// of those who wait: after `patience` they go on without the GPU, which is then lost.
//
// Fair by construction: calls are served in their order, each thread has one at a time, and a fit
// is dozens of small ones; so those who ask take turns, and a large one delays the others by one
// call. The answer to a call is the same bits whatever it goes together with. The queue is bounded:
// beyond that, callers wait for room. A caller whose work is cancelled leaves at once; what runs
// for it is finished and dropped.
//
// Made by program_gpu.h, and by tests. Thread-safe. What lives on the GPU holds on to this object.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "suggestion/accelerator.h"
#include "suggestion/accelerator/gpu_library.h"

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

// One call to a GPU, from when it begins to wait until its answer is there: between the thread that
// asks and the one that has the device, each of which may be done with it first. It owns all that
// the device reads and writes, because the caller may leave before it is done.
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

class SharedGpu : public Accelerator, public std::enable_shared_from_this<SharedGpu> {
 public:
  struct Options {
    std::vector<std::string> folders;  // of the library
    int ordinal = -1;
    int most_ratio = 8;  // of the speeds of floats and doubles
    absl::Duration patience = absl::Seconds(30);
    size_t most_waiting = 1024;
    Clock* clock = RealClock();
  };
  // Why not, in words for a log, where there is no library or no device that will do.
  static StatusOr<std::shared_ptr<SharedGpu>> Open(  // shared: see above
      const Options& options);
  ~SharedGpu() override;

  Limits limits() const override { return limits_; }
  std::string name() const override { return name_; }
  bool lost() const override;
  // Why it is.
  std::string reason() const;
  GpuCounts counts() const;

  StatusOr<Handle> Upload(const Data& data) override;
  StatusOr<std::vector<Answer>> Evaluate(std::vector<Question> questions) override;
  StatusOr<Conditioned> Condition(const Resident& model, Conditioning conditioning) override;
  StatusOr<Scores> Score(const Resident& posterior, const Points& points) override;

 private:
  class GpuResident;
  using Jobs = std::vector<std::shared_ptr<GpuJob>>;  // shared: by the caller and the thread

  explicit SharedGpu(const Options& options) : options_(options) {}
  Status AwaitOpening();
  Status Run(const std::shared_ptr<GpuJob>& job);                    // shared: see above
  Status Await(const std::shared_ptr<GpuJob>& job, MutexLock& lock)  // shared: see above
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Abandon(const std::shared_ptr<GpuJob>& job)  // shared: see above
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Lose(const std::string& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Discard(gpu::DeviceModel* model, gpu::DevicePosterior* posterior);

  // In the thread.
  void Work(const std::stop_token& stop);
  Status OpenSession();
  void Serve(const std::stop_token& stop);
  Jobs NextJobs() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Perform(const Jobs& jobs);
  void PerformTogether(const Jobs& jobs);
  Status EvaluateTogether(const Jobs& jobs);
  Status ScoreTogether(const Jobs& jobs);
  void Count(const Jobs& jobs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Limits limits_;     // these two are set before Open returns
  std::string name_;  // and not changed after
  int64_t together_bytes_ = 0;
  std::optional<GpuSession> session_;  // of the thread

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::shared_ptr<GpuJob>> queue_ ABSL_GUARDED_BY(mutex_);  // shared: see Jobs
  std::vector<std::pair<gpu::DeviceModel*, gpu::DevicePosterior*>> discarded_
      ABSL_GUARDED_BY(mutex_);
  std::optional<Status> opened_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Duration> busy_since_ ABSL_GUARDED_BY(mutex_);
  bool lost_ ABSL_GUARDED_BY(mutex_) = false;
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  GpuCounts counts_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: joined before the rest goes
};

}  // namespace shirabe::suggestion::accelerator
