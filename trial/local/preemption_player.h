// Plays the platform where pools of a nodes file reclaim their machines: a timer takes slots away
// when their trace (simulated_preemption.h) says so, and ends what runs there. What a restart must
// know of that stands in files before it happens. Owned by the executor `process`; thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "trial/file_layout.h"
#include "trial/local/process_table.h"
#include "trial/local/simulated_preemption.h"
#include "trial/local/supervisor_records.h"
#include "trial/wakeup_timer.h"

namespace shirabe::trial {

// Tells a program why it ends, before the signal, so that it finds it when it looks. Without it the
// program does not learn why, which is no reason to let it run on: what fails is logged.
struct StopRequest {
  v1::Cause why = v1::CAUSE_NONE;
  absl::Duration grace;
};
void WriteStopRequest(const FileLayout& layout, Clock* clock, const AttemptKey& key,
                      const StopRequest& request);

class PreemptionPlayer {
 public:
  // `layout` and `attempts` outlive it.
  struct Options {
    Clock* clock = nullptr;
    const FileLayout* layout = nullptr;
    ProcessTable* attempts = nullptr;
    v1::NodePools pools;
    // Something about these experiments changed; called under no lock.
    std::function<void(const std::set<ExperimentKey>&)> announce;
  };
  explicit PreemptionPlayer(const Options& options);

  // Begins to play, if there are pools: once.
  void Start();

  // The first start of an experiment: its trace begins, unless an earlier process has begun it.
  Status Begin(const ExperimentKey& experiment) { return Open(experiment, /*create=*/true); }
  // Goes on with the traces of experiments of which all that runs is known by now.
  void Resume(const std::set<ExperimentKey>& experiments);
  void Forget(const ExperimentKey& experiment);

 private:
  Status Open(const ExperimentKey& experiment, bool create);
  std::optional<absl::Duration> Play();
  void Preempt(const Reclaims::Preemption& preemption, const std::string& id);

  const Options options_;
  Mutex mutex_;
  Reclaims reclaims_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WakeupTimer> timer_;  // last: its thread uses all of the above
};

}  // namespace shirabe::trial
