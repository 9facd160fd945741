// Who shows a bearer token, and what he may do: asked of the API server by TokenReview and
// SubjectAccessReview, so that the cluster's own RBAC decides. Made by the controller for its
// doors. Takes only tokens that were made for its audience: one that a program is given to speak to
// the API server opens nothing here, and one of ours opens nothing there. Answers are kept for
// seconds, so that a right that is taken away ends soon. Thread-safe; calls block.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "kube/client.h"

namespace shirabe::kube {

// What a TokenReview says of somebody: username, uid, groups, extra.
struct Person {
  std::string name;
  Json info;
};

// "may PERSON list experiments.kubeflow.org in NAMESPACE?"
struct Deed {
  std::string verb;
  std::string group;
  std::string resource;
  std::string namespace_name;  // "" = in all of them
};

class Reviewer {
 public:
  // Both outlive it.
  Reviewer(Client* client, Clock* clock, std::string audience)
      : client_(client), clock_(clock), audience_(std::move(audience)) {}

  // kUnauthenticated for a token that is not one, has expired, or is for another audience;
  // kUnavailable if the API server cannot be asked, or too many unknown ones are shown.
  StatusOr<Person> Review(const std::string& token);
  // kPermissionDenied, naming him and the deed, if he may not.
  Status MayDo(const Person& person, const Deed& deed);

 private:
  template <class Value>
  struct Kept {
    Value value;
    absl::Duration until;
  };
  StatusOr<Person> AskWho(const std::string& token);
  Status AskWhether(const Person& person, const Deed& deed);
  bool TakeTurn();

  Client* const client_;
  Clock* const clock_;
  const std::string audience_;
  std::mutex mutex_;
  std::map<std::string, Kept<StatusOr<Person>>> people_;  // by token
  std::map<std::string, Kept<Status>> rights_;            // by person and deed
  double turns_ = 0;
  absl::Duration turns_at_ = -absl::InfiniteDuration();
};

}  // namespace shirabe::kube
