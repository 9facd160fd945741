// Makes the object that runs one attempt in a cluster, from the trial's rendered object: its name,
// labels and owner, and, where the program is started by a command that stands in the object, the
// containers of ours around it (trial/pod/pod_names.h says what they find where):
//   shirabe-folders  where checkpoints lie on a volume that trials share: the first of the init
//                    containers, makes the folders there that the others mount
//   shirabe-init     before the user's init containers: brings the supervisor, parameters and the
//                    checkpoint to go on from
//   shirabe-sidecar  a native sidecar, the last of the init containers: sends logs, metrics and
//                    checkpoints' records to us, and brings requests
//   the primary      runs its command under the supervisor, with the contract's variables
// One Job per attempt never tries again by itself: every retry is an attempt of ours. Pure; the
// same request gives the same object, so that starting twice is starting once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text/json_fields.h"
#include "trial/attempt_status.h"
#include "trial/pod/pod_names.h"
#include "trial/pod/pod_options.h"
#include "trial/pod/pod_templates.h"

namespace shirabe::trial {

struct AttemptObject {
  Json object;                // to create
  std::optional<Json> claim;  // a PersistentVolumeClaim to create before, unless it exists
  std::string api_version;
  std::string kind;
  AttemptRecipe recipe;  // as in its annotation
  // Why nothing was put into its pods, in words; "" if recipe.instrumented. Then the log of the
  // primary pod is all there is, and a lost attempt begins again from 0.
  std::string uninstrumented_reason;
  // Why no checkpoint of its program is committed though our containers are in a pod of it, in
  // words; "" if they are. It is one of several, and a lost attempt begins again from 0.
  std::string without_checkpoints;
  std::vector<std::string> warnings;
};

// kInvalidArgument, with the path of the field in the experiment and the fix: no such container, a
// name or path that we need is taken, nothing to mount a collector's file from.
StatusOr<AttemptObject> BuildAttemptObject(const AttemptRequest& request, const PodOptions& options,
                                           const PodScheduling& place);

// A pod as it will be made of a template of the object, and how many of them: for what they cost
// (trial/kubernetes/price_quote.h) before there is one. What ours will ask for beside the program
// is in it.
struct SamplePod {
  Json pod;
  int64_t count = 1;
};
std::vector<SamplePod> SamplePods(const Json& object);

}  // namespace shirabe::trial
