// Puts our containers around a program in a pod template. Used by trial/pod/pod_build.cc and its
// neighbours, and by trial/kubernetes/checkpoint_volume.cc. Pure.
#pragma once

#include <string>

#include "base/status.h"
#include "trial/attempt_status.h"
#include "trial/pod/pod_options.h"
#include "trial/pod/pod_templates.h"

namespace shirabe::trial {

constexpr char kProgram[] = "shirabe";  // found by the PATH of our image

struct Injection {
  const AttemptRequest& request;
  const PodOptions& options;
  const PodTemplate& pod;
  size_t container = 0;     // index of the primary one
  bool checkpoints = true;  // they are committed
};

// kInvalidArgument, with the path of the field and the fix.
Status Inject(const Injection& injection);

// Of the container of the user's that collects, beside the program; "" = there is none.
std::string CustomCollectorName(const AttemptRequest& request);

// The contract's variables for a program without our containers: names and numbers, no paths.
void AddPlainEnvironment(const AttemptRequest& request, Json& container);

// What each of our containers asks of the node of such a pod.
Json SidecarResources(const Json& pod_spec);
// As whom ours run in it, beside `program`, or alone on the files that it has left.
Json SecurityBeside(const Json& pod_spec, const Json& program);

// How long the pod has from SIGTERM to SIGKILL: the experiment's grace, or the user's longer one.
absl::Duration WholeGrace(const AttemptRequest& request, const Json& pod_spec);

}  // namespace shirabe::trial
