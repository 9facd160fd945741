// What is read of an attempt's logs through the API server: all of a pod that has no sidecar of
// ours, and of another one what its sidecar could not send. Each call takes as long as the API
// server does. Thread-safe for different attempts: no state.
#pragma once

#include <vector>

#include "base/names.h"
#include "base/status.h"
#include "base/text/json_fields.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/kubernetes/cluster_context.h"
#include "trial/pod/file_mirror.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {

struct PodLog {
  AttemptKey key;  // the pod itself need not say whose it is
  const Json& pod;
  const AttemptRecipe& recipe;
};
// Adds to the copy of a program's log what it does not have yet. If the two do not meet, the copy
// that a sidecar sent stays as it is: it is of the program's file.
Status CopyLog(const ClusterContext& context, const PodLog& from, FileMirror& mirror);

// What a sidecar has printed because it could not send it.
StatusOr<std::vector<v1::SyncRequest>> ReadFinalSync(const ClusterContext& context,
                                                     const Json& pod);

// An API server that is busy, or hangs, may answer later: without the rest a trial has no result.
bool IsPassing(const Status& status);

// What the sidecar of a pod has printed last of why it does not reach the server; "" = nothing.
StatusOr<std::string> ReadSidecarError(const ClusterContext& context, const Json& pod);

}  // namespace shirabe::trial
