// Runs attempts somewhere: as processes here, as Jobs in a cluster. Implementations are
// thread-safe, hold no truth of their own (the store does) and are idempotent by attempt name, so
// that after a crash the caller just calls again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/registry.h"
#include "base/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/attempt_status.h"

namespace shirabe::artifacts {
class StoreTable;  // artifacts/store_table.h
}  // namespace shirabe::artifacts

namespace shirabe::trial {

struct PodOptions;  // trial/pod/pod_options.h

class Executor {
 public:
  virtual ~Executor() = default;

  // Starts the attempt and returns once it is on its way (its command may still fail to start).
  // An attempt of this name that already exists is adopted if it has this token, whether it runs
  // or has ended; else kAlreadyExists. Nothing was started, try again: kResourceExhausted, no free
  // slot or no such pool yet; kUnimplemented, no such kind yet; kUnavailable, a checkpoint is being
  // verified. kInvalidArgument: it can never run here; field and fix. on_change follows.
  virtual Status Start(const AttemptRequest& request) = 0;

  // Asks it to end: control file with `why`, SIGTERM, and SIGKILL of all its descendants after
  // `grace`. Returns at once; unknown or ended is OK. Calling again may only shorten the grace.
  virtual Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) = 0;

  // Takes up attempts that an earlier process started: those of `open` that it can find are
  // watched again, running or ended; the others are reported as kLost.
  virtual void Adopt(const std::vector<v1::Attempt>& open) = 0;

  // Kills programs with files in this home that run on this machine, neither started nor adopted
  // here, whose attempts have ended: `ended` gives the record of such a one.
  using FindEnded = std::function<std::optional<v1::Attempt>(const AttemptKey&)>;
  virtual void StopStrays(const FindEnded& /*ended*/) {}

  // Every attempt of the experiment that was started or adopted and not forgotten.
  virtual std::vector<AttemptStatus> Observe(const ExperimentKey& experiment) = 0;

  // Its end is in the store: drop it from Observe, free its devices, keep its files.
  virtual void Forget(const AttemptKey& key) = 0;

  // Deletes the files of an experiment, or of one trial. No attempt of it may be running.
  virtual Status RemoveFiles(const ExperimentKey& experiment, int64_t trial = 0) = 0;

  virtual AttemptPaths Paths(const AttemptKey& key) const = 0;

  // What a new attempt of the experiment would get. Where it would have to wait, on_change of the
  // experiment is called once there may be room.
  virtual PlacementQuote QuotePlacement(const ExperimentKey& experiment,
                                        const google::protobuf::Struct& trial_spec,
                                        const PlacementRequest& placement_request) = 0;

  // Deletes a committed checkpoint, soon. No attempt may be resuming from it.
  virtual void Prune(const v1::Checkpoint& checkpoint) = 0;

  // The rest is for programs that run elsewhere, beside files that this process cannot open. Where
  // they run on this machine there is nothing to do.

  // Before anything else of an experiment: the volume that its specification names for checkpoints.
  virtual void UseVolume(const ExperimentKey&, const v1::ExperimentSpec&) {}
  // After RemoveFiles: deletes, soon, what the experiment has left on that volume, and nothing else
  // there. Tried again by the platform, so there is no error.
  virtual void CleanVolume(const ExperimentKey&, const v1::ExperimentSpec&) {}

  // What stands beside such a program brings its files and its state, and is told what to do.
  // `bearer` proves that it does. kPermissionDenied unless it is of an attempt that was started or
  // adopted here; kUnimplemented where programs run on this machine.
  virtual StatusOr<v1::SyncReply> Sync(const v1::SyncRequest& request,
                                       const std::string& bearer = {});
  // A URL for one request of it to a store: see rpc v1.Pods/Grant. The errors are Sync's and its.
  virtual StatusOr<v1::GrantReply> Grant(const v1::GrantRequest& one, const std::string& bearer);
};

struct ExecutorOptions {
  std::string home;  // $SHIRABE_HOME
  Clock* clock = nullptr;
  std::vector<std::string> devices;  // GPUs that may be given out
  v1::NodePools pools;               // none: this machine, without a price or a limit
  // Of the cluster, for an executor that runs attempts there; null elsewhere.
  std::shared_ptr<const PodOptions> pods;  // shared: by all copies of these options
  // Of the administrator, for copies of checkpoints; null = there are none.
  std::shared_ptr<const artifacts::StoreTable> stores;  // shared: as above
  StatusHandlers status_handlers;                       // for programs of this machine
  // Called, from any thread and never under a lock, when something about the experiment changed;
  // on_output where that is nothing but an AttemptStatus::files_version.
  std::function<void(const ExperimentKey&)> on_change, on_output;
};

// An executor and what the rest of the program wants to know of it.
struct ExecutorInfo {
  std::string name;  // process, kubernetes
  std::string help;
  // Attempts run elsewhere, under the rights of their namespaces, not as the user of this process.
  bool in_cluster = false;
  StatusOr<std::unique_ptr<Executor>> (*create)(const ExecutorOptions& options);
};
// The same for a registered name; false for any other.
bool RunsInCluster(const std::string& executor);
inline constexpr char kAskedNode[] = "asked";  // where trials run that a caller runs

// The executor of trials that a caller runs, which has asked for them and will tell their end
// (ask-and-tell): to start one is to note it down, and to stop one is to say that it has ended. No
// file is touched. Called by the reconciler; thread-safe. Not registered: what an executor promises
// about programs does not hold of it.
class AskAndTellExecutor : public Executor {
 public:
  explicit AskAndTellExecutor(Clock* clock) : clock_(clock) {}

  Status Start(const AttemptRequest& request) override;
  Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) override;
  void Adopt(const std::vector<v1::Attempt>& open) override;
  std::vector<AttemptStatus> Observe(const ExperimentKey& experiment) override;
  void Forget(const AttemptKey& key) override;
  Status RemoveFiles(const ExperimentKey&, int64_t) override { return absl::OkStatus(); }
  AttemptPaths Paths(const AttemptKey&) const override { return {}; }
  PlacementQuote QuotePlacement(const ExperimentKey&, const google::protobuf::Struct&,
                                const PlacementRequest&) override {
    return {};
  }
  void Prune(const v1::Checkpoint&) override {}

 private:
  void RecordStart(const AttemptKey& key, absl::Time since);

  Clock* const clock_;
  Mutex mutex_;
  std::map<AttemptKey, AttemptStatus> attempts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::trial
