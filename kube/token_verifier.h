// Whose token of a service account this is, found out where a TokenReview may not be asked for,
// since that is a right for the whole cluster: in an install for one namespace. The API server
// publishes the keys that it signs with; signature, issuer, audience and times are checked here,
// and that the account, and the pod that the token is bound to, are still there is asked of the API
// server, which takes rights in that namespace alone. Tokens of other namespaces' accounts are
// refused. Used by token_reviewer.cc, which limits and remembers. Thread-safe; calls block.
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
  // Client and clock outlive it.
  TokenVerifier(Client* client, Clock* clock, std::string audience, std::string namespace_name);

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
  StatusOr<Json> Claims(const std::string& token);
  Status CheckClaims(const Json& claims, const std::string& issuer) const;
  // Whether the object of that name is there, and still the one of this uid.
  Status CheckBound(const Resource& resource, const Json& reference);

  Client* const client_;
  Clock* const clock_;
  const std::string audience_;
  const std::string namespace_;
  Mutex mutex_;
  Keys keys_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::kube
