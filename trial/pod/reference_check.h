// Whether what the pods of an attempt name is there (trial/pod/pod_references.h), asked before its
// object is made: a pod without it would hold a node, and say why only to those who look at it. The
// API server is asked for metadata alone, so that nothing secret comes into this process. Where the
// controller may not ask, as for Secrets in the install as it is, nothing is said here, and the
// pod's own events do (trial/kubernetes/wait_reasons.h). Answers are believed for a few seconds,
// since many trials name the same. Part of the executor `kubernetes`; thread-safe; calls block.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "kube/api_client.h"
#include "kube/ttl_cache.h"
#include "trial/pod/pod_build.h"
#include "trial/pod/pod_references.h"

namespace shirabe::trial {

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
