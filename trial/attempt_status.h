// What an executor is told about an attempt, and what it tells.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::trial {

// Which machines an attempt may use.
struct PlacementRequest {
  v1::CapacityPolicy policy;
  bool on_demand = false;  // preempted too often: on-demand machines only, where there are any
};

struct AttemptRequest {
  AttemptKey key;
  std::string token;                    // the attempt's secret
  google::protobuf::Struct trial_spec;  // rendered: no ${trialParameters.…} left
  std::string primary_container;
  std::map<std::string, std::string> environment;  // of the contract, without the paths
  std::string parameters_json;                     // contents of PARAMS_FILE
  std::string working_dir;  // for a relative or absent workingDir; "" = the process's
  absl::Duration grace;     // between SIGTERM and SIGKILL
  PlacementRequest placement_request;
  // Checkpoints to go on from, the newest first; the first that proves intact is used. None, or
  // none intact: from the beginning.
  std::vector<v1::Checkpoint> resume;
  // What only attempts in a cluster need to be told; see trial/kubernetes/kubernetes_executor.h.
  struct Cluster {
    v1::TrialTemplate trial_template;  // its conditions, labels and retain; without trial_spec
    v1::MetricsCollectorSpec collector;
    std::vector<std::string> metrics;  // wanted
    v1::CheckpointVolume volume;
    v1::ArtifactPolicy artifacts;
    v1::CodePackage code;
    std::string owner;  // uid of the Experiment object, "" = it has none in the cluster
  };
  Cluster cluster;
};

// Where an attempt keeps its files. The directories, the log and the parameters exist once Start
// has returned; the metrics and control files when they are first written.
struct AttemptPaths {
  std::string dir;             // of the attempt
  std::string log;             // stdout and stderr, interleaved
  std::string metrics_file;    // {"step":…,"metrics":{…}} lines
  std::string hypertune_file;  // which the library hypertune rewrites with each report
  std::string scrapes_file;    // what was seen at the program's HTTP endpoint
  std::string params_file;
  std::string control_file;
  std::string checkpoint_dir;
  std::string output_dir;  // of the trial, shared by its attempts
  // Set where all of these are copies, made of what a program elsewhere writes: below it lie the
  // files that it names by an absolute path of its own.
  std::string root;
};

// What is known of an attempt that was started, or adopted, here.
struct AttemptStatus {
  enum class State {
    kRunning,  // or on its way: as long as `placement` has no start_time
    kExited,   // it ended and its exit was seen: exit_code or signal
    kLost,     // it is gone; how was not seen
  };
  AttemptKey key;
  State state = State::kRunning;
  std::optional<int> exit_code;
  int signal = 0;
  bool out_of_memory = false;
  v1::Placement placement;  // with start_time, and end_time once it ended
  std::string message;      // for people: "cannot start …: No such file or directory"
  std::string waiting;      // why it is not running yet, and what to do about it
  // PREEMPTED_* once the platform, not we, takes its machine away; whatever the exit code.
  v1::Cause platform = v1::CAUSE_NONE;
  // It ran longer than activeDeadlineSeconds allows: those of its Job, which is final as there, or
  // those of its pod. `platform` is APP_ERROR then.
  enum class Overdue { kNo, kJob, kPod } overdue = Overdue::kNo;
  // By a clock that is never set. Once ended; of a running one where it is known.
  std::optional<absl::Duration> ran;
  // Whether `resumed` and `damaged` are known. Of a pod they are told, a moment after it has begun.
  bool begin_known = true;
  std::optional<v1::Checkpoint> resumed;  // the one it was started from
  std::vector<v1::Checkpoint> damaged;    // of `resume`, not usable; `gone` says why
  // Where this process brings the attempt's files: another number, never one that was, after each
  // change of one. Unset: its program writes them, and only a look at them tells.
  std::optional<int64_t> files_version;
  // All that it has saved and that were committed (trial/checkpoint/checkpoint_store.h), by step,
  // without `resumed`. Complete once it has ended.
  std::vector<v1::Checkpoint> checkpoints;
  std::vector<std::string> refused;  // what it saved and cannot be committed, in words
  // Once ended: what became of the copies of its checkpoints and outputs (ArtifactPolicy), in
  // words; "" = none.
  std::string copied;
  std::string uncopied;                   // those that could not be made, and why
  std::optional<v1::Checkpoint> outputs;  // the copy of the trial's outputs, at step 0
  std::string outputs_uncopied;           // why there is none
};

// What an attempt would get if it were started now.
struct PlacementQuote {
  std::string waiting;        // why it could not start, in words; "" if it could
  double price_per_hour = 0;  // the most it may cost
};

// What becomes of the status that a program sends over HTTP. Executors that listen for it
// (trial/local/attempt_endpoints.h) know which attempt it is of; what it means, their creator knows
// (metrics/trainer_status.h).
struct StatusHandlers {
  size_t max_body = 0;  // bytes; what is larger is refused unread
  // For an attempt that has this metrics file. What it returns is called with each body, one at a
  // time; kInvalidArgument if the body is wrong, any other error if it may be sent again. Null: no
  // program is told where to send it.
  std::function<std::function<Status(const std::string& body)>(const std::string& metrics_file)>
      make;
};

}  // namespace shirabe::trial
