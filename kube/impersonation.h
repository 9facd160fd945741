// Writes that are requested as a ServiceAccount of the namespace that is written to: what an object
// may be is then decided by that account's rights, not by those of this process, which needs
// `impersonate` on ServiceAccounts of that name and no more. Called by kube/api_client.cc. Pure
// functions.
#pragma once

#include <string>

#include "base/status.h"
#include "kube/resource_path.h"

namespace shirabe::kube {

// Whether an account may have this name, as Kubernetes has it: lower case letters, digits, '-' and
// '.', at most 253. kInvalidArgument, with the name and the fix.
Status CheckAccountName(const std::string& name);

// Whose rights decide about a write.
struct ActingAs {
  std::string namespace_name;
  std::string account;
  // The user that the API server knows the account by. kInvalidArgument where a name of it could be
  // read as more than one.
  StatusOr<std::string> User() const;
};

// What was asked for.
struct WriteKind {
  std::string verb;  // create, patch, delete, deletecollection
  Resource resource;
};

// The API server's refusal in words that say which account may not do what, and how that is
// allowed, known to IsAccountRefused. What is refused for another reason (a quota, a policy) is
// returned as it is.
Status ExplainRefusal(const Status& refused, const WriteKind& write, const ActingAs& acting);

// Whether an error says that a namespace's account lacks a right, or that we may not act as it.
bool IsAccountRefused(const Status& status);

}  // namespace shirabe::kube
