// The way of an attempt from a request to a running supervisor: its directories, its inputs, its
// command, its environment. Remembers nothing but where the supervisor's program lies. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "base/mutex.h"
#include "trial/executor.h"
#include "trial/file_layout.h"
#include "trial/local/spawn_supervisor.h"
#include "trial/local/supervisor_records.h"
#include "trial/local/trial_environment.h"
#include "trial/trial_template.h"

namespace shirabe::trial {

// What is known before anything is done.
struct LaunchPlan {
  std::string id;  // AttemptId
  Environment contract;
  Command command;
  // Set by the executor, which gives them out.
  std::vector<std::string> devices;
  std::string place;  // EncodePlacement
};

class Launcher {
 public:
  explicit Launcher(const ExecutorOptions& options);

  const FileLayout& layout() const { return layout_; }

  // Makes sure of the attempt's directories and looks whether it was started before.
  StatusOr<AttemptProcess> Prepare(const AttemptRequest& request, const std::string& id) const;
  // kInvalidArgument if the template cannot run here. `resume_from`: SHIRABE_RESUME_FROM; `more`:
  // of the contract, as the executor gives it.
  StatusOr<LaunchPlan> Plan(const AttemptRequest& request, const std::string& resume_from,
                            const Environment& more) const;
  // Starts it: kRunning, and its supervisor is our child.
  StatusOr<AttemptProcess> Launch(const AttemptRequest& request, const LaunchPlan& plan);

 private:
  StatusOr<pid_t> Spawn(SpawnRequest request);
  StatusOr<std::string> Supervisor(bool again);

  Clock* const clock_;
  const FileLayout layout_;
  const Environment inherited_;
  Mutex mutex_;
  std::string supervisor_ ABSL_GUARDED_BY(mutex_);  // the program's path, once it is unpacked
};

}  // namespace shirabe::trial
