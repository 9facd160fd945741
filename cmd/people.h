// Whom a cluster knows, as callers of a server: what they may do to Experiments by its RBAC, they
// may do here. Used by `controller`.
#pragma once

#include <string>

#include "kube/reviewer.h"
#include "service/auth.h"

namespace shirabe::cmd {

// Of tokens for the doors of Shirabe.
inline constexpr char kAudience[] = "shirabe";

// The reviewer outlives what it introduces.
service::Tokens::Introduce PeopleOf(kube::Reviewer* reviewer);

}  // namespace shirabe::cmd
