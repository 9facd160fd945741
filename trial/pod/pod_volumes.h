// What our containers and the program share in a pod: the volume of ours, the checkpoints' volume,
// and the folder of a file that a collector reads. Used by trial/pod/pod_build.cc and its
// neighbours, and by trial/kubernetes/checkpoint_volume.cc. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/status.h"
#include "base/text/json_fields.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "trial/attempt_status.h"

namespace shirabe::trial {

constexpr char kOurVolume[] = "shirabe";
constexpr char kHomeVolume[] = "shirabe-home";
constexpr char kMetricsVolume[] = "shirabe-metrics";
constexpr char kTokenVolume[] = "shirabe-token";
constexpr char kCodeVolume[] = "shirabe-code";

// Entries of `volumes`, and the mounts that go with them. Of a volume that trials share, a pod
// mounts its attempt's own folders; the init container, which ends before the program starts, also
// those that it may resume from, read-only. Those folders must exist before they can be mounted: a
// container before all others, with the whole volume, makes them and ends.
struct PodVolumes {
  Json volumes = Json::array();
  Json shared = Json::array();     // mounts of the program, the init container and the sidecar
  Json program = Json::array();    // mounts of the program alone
  Json collector = Json::array();  // of the sidecar, and of a collector of the user's
  Json init = Json::array();       // of the init container alone
  Json token = Json::array();      // of the sidecar, and of an init container that asks for URLs
  Json code = Json::array();       // of the program and the user's init containers; none = no code
  Json folders = Json::array();    // of the container that makes folders; none = there is none
};

// Where the collector's file lies for the program: absolute, without our variables. "" if it reads
// none. kInvalidArgument if that cannot be told, or would hide the program.
StatusOr<std::string> CollectorPath(const AttemptRequest& request, const Json& container);

// `path` is that of the collector. kInvalidArgument, naming the field, where the container's own
// mounts are in the way.
StatusOr<PodVolumes> MakeVolumes(const AttemptRequest& request, const Json& container,
                                 const std::string& path);

// Makes claims, which come and go with the pod, of what is an emptyDir. Who writes to that of the
// collector's file is not known, and it is root's at first: `init` mounts it, too, at
// kPodCollected.
void UseClaims(const std::string& storage_class, const std::string& size, PodVolumes& made);

// The checkpoints of `request.resume` that the pod is told of, in the same order: not more than can
// be told, and of the same experiment.
std::vector<v1::Checkpoint> ResumeCandidates(const AttemptRequest& request);

// The entry of `volumes` for checkpoints that all trials keep on one volume; null if they do not.
Json SharedVolume(const v1::CheckpointVolume& volume);

// The volume of a trial's checkpoints. Programs of Katib's population-based training pass theirs on
// from trial to trial (trial/checkpoint/katib_folder.h): where no volume is named that all trials
// share, they share a claim that is made for the experiment, as Katib makes one.
v1::CheckpointVolume VolumeFor(const ExperimentKey& experiment, v1::CheckpointVolume volume,
                               const std::map<std::string, std::string>& environment);
std::string SuggestionClaimName(const ExperimentKey& experiment);

// The claim that is made for the trial, if it gets one of its own, or for all of its experiment.
std::optional<Json> MakeClaim(const AttemptRequest& request);

// Name of the claim that is made for a trial where spec.shirabe.checkpoint.volume.size is set.
std::string ClaimName(const TrialKey& trial);

}  // namespace shirabe::trial
