// Which folders of the nodes may hold checkpoints (spec.shirabe.checkpoint.volume.hostPath). A pod
// that mounts one reads and writes there whatever its user may: only what an administrator has
// named is allowed. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::trial {

// OK for a volume without a hostPath, or with one that is, or lies below, a folder of `allowed`.
// kInvalidArgument, naming field, value and fix.
Status CheckHostPath(const v1::CheckpointVolume& volume, const std::vector<std::string>& allowed);

// kInvalidArgument unless it can be one of `allowed`: absolute, and not the root.
Status ValidateHostPath(const std::string& path);

}  // namespace shirabe::trial
