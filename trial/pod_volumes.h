// What our containers and the program share in a pod: the volume of ours, the checkpoints' volume,
// and the folder of a file that a collector reads. Used by the files pod_*.cc alone. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "trial/attempt.h"
#include "trial/pod_json.h"

namespace shirabe::trial {

constexpr char kOurVolume[] = "shirabe";
constexpr char kHomeVolume[] = "shirabe-home";
constexpr char kMetricsVolume[] = "shirabe-metrics";

// Entries of `volumes`, and the mounts that go with them.
struct PodVolumes {
  Json volumes = Json::array();
  Json shared = Json::array();   // mounts of the program, the init container and the sidecar
  Json program = Json::array();  // mounts of the program alone
  Json sidecar = Json::array();  // of the sidecar alone
};

// Where the collector's file lies for the program: absolute, without our variables. "" if it reads
// none. kInvalidArgument if that cannot be told, or would hide the program.
StatusOr<std::string> CollectorPath(const AttemptRequest& request, const Json& container);

// `path` is that of the collector. kInvalidArgument, naming the field, where the container's own
// mounts are in the way.
StatusOr<PodVolumes> MakeVolumes(const AttemptRequest& request, const Json& container,
                                 const std::string& path);

// The entry of `volumes` for checkpoints that all trials keep on one volume; null if they do not.
Json SharedVolume(const v1::CheckpointVolume& volume);

// The claim that is made for the trial, if it gets one of its own.
std::optional<Json> MakeClaim(const AttemptRequest& request);

}  // namespace shirabe::trial
