// Runs attempts somewhere: as processes here, as Jobs in a cluster. Implementations are
// thread-safe, hold no truth of their own (the store does) and are idempotent by attempt name, so
// that after a crash the caller just calls again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/names.h"
#include "base/registry.h"
#include "base/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::trial {

struct AttemptRequest {
  AttemptKey key;
  std::string token;                    // the attempt's secret
  google::protobuf::Struct trial_spec;  // rendered: no ${trialParameters.…} left
  std::string primary_container;
  std::map<std::string, std::string> environment;  // of the contract, without the paths
  std::string parameters_json;                     // contents of PARAMS_FILE
  std::string working_dir;  // for a relative or absent workingDir; "" = the process's
  absl::Duration grace;     // between SIGTERM and SIGKILL
};

// Where an attempt keeps its files. The directories, the log and the parameters exist once Start
// has returned; the metrics and control files when they are first written.
struct AttemptPaths {
  std::string dir;           // of the attempt
  std::string log;           // stdout and stderr, interleaved
  std::string metrics_file;  // {"step":…,"metrics":{…}} lines
  std::string params_file;
  std::string control_file;
  std::string checkpoint_dir;
  std::string output_dir;  // of the trial, shared by its attempts
};

// What is known of an attempt that was started, or adopted, here.
struct Sighting {
  enum class State {
    kRunning,
    kExited,  // it ended and its exit was seen: exit_code or signal
    kLost,    // it is gone and nobody saw how
  };
  AttemptKey key;
  State state = State::kRunning;
  std::optional<int> exit_code;
  int signal = 0;
  bool out_of_memory = false;
  v1::Placement placement;  // with start_time, and end_time once it ended
  std::string message;      // for people: "cannot start …: No such file or directory"
};

class Executor {
 public:
  virtual ~Executor() = default;

  // Starts the attempt and returns once it is on its way (its command may still fail to start).
  // An attempt of this name that already exists is adopted if it has this token, whether it runs
  // or has ended; else kAlreadyExists. kResourceExhausted (nothing was started; try again): no free
  // device or slot. kInvalidArgument: the template cannot run here, with the field and the fix.
  virtual Status Start(const AttemptRequest& request) = 0;

  // Asks it to end: control file with `why`, SIGTERM, and SIGKILL of all its descendants after
  // `grace`. Returns at once; unknown or ended is OK. Calling again may only shorten the grace.
  virtual Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) = 0;

  // Takes up attempts that an earlier process started: those of `open` that it can find are
  // watched again, running or ended; the others are reported as kLost.
  virtual void Adopt(const std::vector<v1::Attempt>& open) = 0;

  // Every attempt of the experiment that was started or adopted and not forgotten.
  virtual std::vector<Sighting> Observe(const ExperimentKey& experiment) = 0;

  // Its end is in the store: drop it from Observe, free its devices, keep its files.
  virtual void Forget(const AttemptKey& key) = 0;

  // Deletes the files of an experiment, or of one trial. No attempt of it may be running.
  virtual Status RemoveFiles(const ExperimentKey& experiment, int64_t trial = 0) = 0;

  virtual AttemptPaths Paths(const AttemptKey& key) const = 0;

  // Why no attempt of this template could start now, in words; "" if one could.
  virtual std::string Waiting(const google::protobuf::Struct& trial_spec) = 0;
};

struct ExecutorOptions {
  std::string home;  // $SHIRABE_HOME
  Clock* clock = nullptr;
  std::vector<std::string> devices;  // GPUs that may be given out
  // Called, from any thread and never under a lock, when something about the experiment changed.
  std::function<void(const ExperimentKey&)> on_change;
};

struct ExecutorInfo {
  std::string name;  // process
  std::string help;
  StatusOr<std::unique_ptr<Executor>> (*create)(const ExecutorOptions& options);
};

}  // namespace shirabe::trial
