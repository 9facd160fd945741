// What the pods of a trial's object name and must find in their namespace before they can start:
// Secrets, ConfigMaps and claims, in variables and volumes. What the object marks as optional is
// left out, and imagePullSecrets are: a pod starts without them where its image is public, and its
// events say so where it is not.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/text/json_fields.h"
#include "kube/api_client.h"
#include "kube/ttl_cache.h"
#include "trial/pod/pod_build.h"

namespace shirabe::trial {

struct PodReference {
  std::string kind;  // Secret, ConfigMap, PersistentVolumeClaim
  std::string name;
  std::string place;  // the first one that names it: "env HF_TOKEN of container main"
};

// Pure. Each once, at most 64 of them, in the order of the object. Of kinds whose pods are not in
// the object (trial/pod/operator_kinds.h) only what a TrainJob has itself: `spec.trainer`.
std::vector<PodReference> ReferencesOf(const Json& object);

// Whether what the pods of an attempt name is there, asked before its object is made: a pod without
// it would hold a node, and say why only to those who look at it. The API server is asked for
// metadata alone, so that nothing secret comes into this process. Where the controller may not ask,
// as for Secrets in the install as it is, nothing is said here, and the pod's own events do
// (trial/kubernetes/wait_reasons.h). Answers are believed for a few seconds, since many trials name
// the same. Part of the executor `kubernetes`; thread-safe; calls block.
class ReferenceCheck {
 public:
  // Both outlive it.
  ReferenceCheck(kube::Client* client, Clock* clock) : client_(*client), clock_(*clock) {}

  // kResourceExhausted (trial/start_error.h), naming each that is missing, or is being deleted,
  // where it is named, and what to do.
  Status Check(const AttemptObject& built);

 private:
  // "" if it is there, or if that cannot be known.
  std::string WhatIsWrong(const PodReference& reference, const std::string& namespace_name);

  kube::Client& client_;
  Clock& clock_;
  kube::TtlCache<Status> answers_;  // by kind, namespace and name
};

}  // namespace shirabe::trial
