// Which pod a token is bound to: a projected token of its ServiceAccount, for our audience, which
// stands in no specification and so is known only to the containers that mount it. By the cluster's
// signature, for the caller sees by its watch whether the pod is there; where that does not say it
// (keys that may not be read, an issuer that publishes none), asked of the API server, and believed
// for minutes: that an attempt is over is found out elsewhere. Used by the executor `kubernetes`;
// thread-safe; calls block.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "kube/api_client.h"
#include "kube/token_reviewer.h"
#include "kube/token_verifier.h"
#include "kube/ttl_cache.h"

namespace shirabe::trial {

class PodTokenReviewer {
 public:
  // Both outlive it. `only_namespace` as kube::ReviewOptions have it.
  PodTokenReviewer(kube::Client* client, Clock* clock, const std::string& only_namespace = "");

  // Whether the token is that of this pod, which is there. kUnauthenticated for one that is not
  // known, or not now: it is renewed while the pod lives. kPermissionDenied for another pod's.
  // kUnavailable where the cluster cannot be asked.
  Status Check(const std::string& token, const std::string& namespace_name,
               const std::string& pod_uid);

  // The uid of the pod that the token itself names; "" if it names none. It proves nothing, and is
  // for finding out whether there is anything to ask about.
  static std::string ClaimedPod(const std::string& token);

 private:
  // NAMESPACE/UID of the pod that the cluster has signed it for; "" = it has not, or not for one.
  std::string SignedPod(const std::string& token);

  Clock* const clock_;
  kube::TokenVerifier verifier_;
  kube::TtlCache<StatusOr<std::string>> signed_;  // by token
  kube::TokenReviewer reviewer_;
};

}  // namespace shirabe::trial
