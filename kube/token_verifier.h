// Whose token of a service account this is, found out without a TokenReview: where that may not be
// asked for, since it is a right for the whole cluster (an install for one namespace), and where it
// would be one request more for each pod. The API server publishes the keys that it signs with;
// signature, issuer, audience and times are checked here. Verify asks as well whether the account,
// and the pod that the token is bound to, are still there, which takes rights in that namespace
// alone. Keys that cannot be read again, for the API server is away, are believed for an hour. Used
// by token_reviewer.cc, which limits and remembers, and by the executor `kubernetes`, which sees
// its pods. Thread-safe; calls block, but while one of them reads the keys no other waits for it.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "kube/api_client.h"
#include "kube/json_web_key.h"

namespace shirabe::kube {

// What a TokenReview says of a user: username, uid, groups, extra.
struct UserInfo {
  std::string name;
  Json info;
};

class TokenVerifier {
 public:
  // Client and clock outlive it. Tokens of other namespaces' accounts are refused; "" = of none.
  TokenVerifier(Client* client, Clock* clock, std::string audience, std::string namespace_name);

  // What a token says that the cluster has signed for this audience, and that is valid now: what it
  // is bound to need not be there any more. Errors as Verify has them.
  StatusOr<Json> Claims(const std::string& token);
  // kUnauthenticated, saying no more than a TokenReview would, for every token that is not to be
  // believed; kUnavailable if the API server cannot be asked.
  StatusOr<UserInfo> Verify(const std::string& token);

 private:
  struct Keys {
    std::string issuer;
    std::vector<JsonWebKey> all;
    absl::Duration read_at = -absl::InfiniteDuration();  // monotonic
  };

  StatusOr<Keys> KeysFor(const std::string& id);
  StatusOr<Keys> ReadKeys() const;
  Status CheckClaims(const Json& claims, const std::string& issuer) const;
  // Whether the object of that name is there, and still the one of this uid.
  Status CheckBound(const Resource& resource, const Json& reference);

  Client* const client_;
  Clock* const clock_;
  const std::string audience_;
  const std::string namespace_;
  Mutex mutex_;
  Keys keys_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  // When they could not be read the last time, and why: not asked for again at once.
  absl::Duration failed_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::kube
