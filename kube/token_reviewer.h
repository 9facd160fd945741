// Which user shows a bearer token, and what they may do: asked of the API server by TokenReview and
// SubjectAccessReview, so that the cluster's own RBAC decides. Made by the controller for its
// listeners. Takes only tokens that were made for its audience: one that a program is given to
// speak to the API server opens nothing here, and one of ours opens nothing there. Answers are kept
// for seconds, so that a right that is taken away ends soon. Who may not ask for TokenReviews, and
// has one namespace only, takes the accounts of that one (token_verifier.h), and asks for
// LocalSubjectAccessReviews. Thread-safe; calls block.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/rate_limits.h"
#include "kube/api_client.h"
#include "kube/token_verifier.h"
#include "kube/ttl_cache.h"

namespace shirabe::kube {

// "may USER list experiments.kubeflow.org in NAMESPACE?"
struct ResourceAttributes {
  std::string verb;
  std::string group = {};
  std::string resource = {};
  std::string namespace_name = {};  // "" = in all of them
  // Where it is not "", the request is for a path and none of the above but the verb counts: "may
  // USER get /metrics?"
  std::string path = {};
};

// Unknown tokens that are looked into: made-up ones must not use up what the API server grants us,
// and those of one caller not the turns of the others. And for how long it is believed whose a
// token is.
struct ReviewLimits {
  RateLimits each = {.requests_per_second = 20, .burst = 100};
  RateLimits all = {.requests_per_second = 100, .burst = 400};
  absl::Duration ttl = absl::Seconds(30);
};

struct ReviewOptions {
  std::string audience;
  std::string only_namespace = {};  // all that we may look at; "" = the whole cluster
  ReviewLimits limits = {};
};

class TokenReviewer {
 public:
  // Both outlive it.
  TokenReviewer(Client* client, Clock* clock, ReviewOptions options);

  // kUnauthenticated for a token that is not one, has expired, or is for another audience;
  // kUnavailable if the API server cannot be asked, or too many unknown ones are shown.
  // `caller`: the address, or whatever else they are told apart by.
  StatusOr<UserInfo> Review(const std::string& token, const std::string& caller);
  // kPermissionDenied, naming the user and the request, if they may not.
  Status Authorize(const UserInfo& user_info, const ResourceAttributes& attributes);

 private:
  StatusOr<UserInfo> ReviewToken(const std::string& token);
  StatusOr<UserInfo> AskForReview(const std::string& token);
  Status ReviewAccess(const UserInfo& user_info, const ResourceAttributes& attributes);

  Client* const client_;
  Clock* const clock_;
  const ReviewOptions options_;
  std::optional<TokenVerifier> verifier_;  // where there is one namespace
  std::atomic<bool> may_review_ = true;    // as far as it is known
  TtlCache<StatusOr<UserInfo>> users_;     // by token
  TtlCache<Status> decisions_;             // by user and request
  RateLimiter each_, all_;                 // of unknown tokens
};

}  // namespace shirabe::kube
