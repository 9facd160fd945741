// What the pods of a trial's object name and must find in their namespace before they can start:
// Secrets, ConfigMaps and claims, in variables and volumes. What the object marks as optional is
// left out, and imagePullSecrets are: a pod starts without them where its image is public, and its
// events say so where it is not. Used by trial/pod/reference_check.h. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/text/json_fields.h"

namespace shirabe::trial {

struct PodReference {
  std::string kind;  // Secret, ConfigMap, PersistentVolumeClaim
  std::string name;
  std::string place;  // the first one that names it: "env HF_TOKEN of container main"
};

// Each once, at most 64 of them, in the order of the object. Of kinds whose pods are not in the
// object (trial/pod/operator_kinds.h) only what a TrainJob has itself: `spec.trainer`.
std::vector<PodReference> ReferencesOf(const Json& object);

}  // namespace shirabe::trial
