// What the executor `kubernetes` does about the volume that the checkpoints of an experiment lie
// on, beside mounting it: whether it will do for all trials, and how it is cleaned. Each asks the
// API server and takes as long as that takes. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/status.h"
#include "base/text/json_fields.h"
#include "kube/api_client.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/pod/pod_options.h"

namespace shirabe::trial {

// Whether the claim that the trials share can be mounted by so many pods on so many nodes; asked
// before the experiment is accepted. kInvalidArgument, with field, value and fix: never.
// kFailedPrecondition, with the fix: not yet, it is not there. Anything else: it could not be found
// out. The modes stand in the claim alone: a copy of them in the experiment would only be a second
// thing to be wrong.
Status CheckSharedClaim(kube::Client& client, const ExperimentKey& experiment,
                        const v1::ExperimentSpec& spec);

// Has the Job (volume_jobs.h) run, now or once more. OK as soon as it is on its way, and where its
// namespace, and so the claim, is gone. kUnavailable and kResourceExhausted: try again.
Status StartCleaner(kube::Client& client, const Json& cleaner);

// Has the Job of that name run with this list of checkpoints (volume_jobs.h). True once it has
// deleted them, and is gone itself; false: not yet. An error: ask again later, it starts over.
StatusOr<bool> RunPruner(kube::Client& client, const Json& pruner);

// OK unless old files of an experiment of this name are being deleted, or could not be:
// kResourceExhausted, with what to do.
Status CheckCleaned(kube::Client& client, const ExperimentKey& experiment);

// The Job that deletes what an experiment has left on the volume of its checkpoints: `shirabe pod
// clean` in a pod of our image that mounts nothing else, as the user who wrote the files and where
// the trials ran. It may be started twice and ends well where nothing is left. The cluster removes
// it an hour after its end; until then it says by its name that the folder may still have old files
// in it, so that no experiment of the same name begins among them. Pure functions.

// nullopt where the checkpoints go without it: with the pod, or with a claim of each trial.
std::optional<Json> MakeCleaner(const ExperimentKey& experiment, const v1::ExperimentSpec& spec,
                                const PodOptions& options);

// The same for single checkpoints that the experiment does not keep, of attempts whose sidecars are
// gone: nothing else mounts their folders. nullopt as above. It deletes nothing yet: see PrunerFor.
constexpr int kMaxPrunedAtOnce = 100;
std::optional<Json> MakePruner(const ExperimentKey& experiment, const v1::ExperimentSpec& spec,
                               const PodOptions& options);
// With what it is to delete: at most kMaxPrunedAtOnce checkpoints.
Json PrunerFor(Json pruner, const std::vector<v1::Checkpoint>& checkpoints);
std::string PrunerName(const ExperimentKey& experiment);

std::string CleanerName(const ExperimentKey& experiment);

// Whether a Job that is there has nothing left to delete.
bool HasCleaned(const Json& job);
// Whether it has ended, well or not.
bool HasEnded(const Json& job);

// Which folders of the nodes may hold checkpoints (spec.shirabe.checkpoint.volume.hostPath). A pod
// that mounts one reads and writes there whatever its user may: only what an administrator has
// named is allowed. Pure functions.
//
// OK for a volume without a hostPath, or with one that is, or lies below, a folder of `allowed`.
// kInvalidArgument, naming field, value and fix.
Status CheckHostPath(const v1::CheckpointVolume& volume, const std::vector<std::string>& allowed);

// kInvalidArgument unless it can be one of `allowed`: absolute, and not the root.
Status ValidateHostPath(const std::string& path);

}  // namespace shirabe::trial
