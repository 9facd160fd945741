// The one table of rights: every method of gRPC and every route of HTTP, and whom it is open to.
// Asked by both doors before a call is answered, and by guarded_client.cc for the namespace that a
// call names. What is not in the table is open to nobody. Immutable, any thread.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "service/auth.h"

namespace shirabe::service {

struct Right {
  enum class For {
    kNobody,     // not in the table
    kAnyone,     // without a token
    kCallers,    // whoever is known, a trial excepted; what it shows is the caller's own
    kNamespace,  // whoever may do `act` in the namespace
    kTrials,     // the same, and a trial for what is its own, which its token proves
    kPods,       // the attempt whose token is in the message; the executor proves it
    kMetrics,    // the administrator, or who may read /metrics by the cluster's rules
  };
  For whom = For::kNobody;
  Act act = Act::kLook;
};

// By the full name of a method (shirabe.v1.Shirabe/GetExperiment) or the id of a route
// (getExperiment).
const std::map<std::string, Right>& AllRights();
Right RightOf(const std::string& method);

// What can be told before the namespace is known: kPermissionDenied for a trial where trials have
// no business, and for everybody where the table has no entry.
Status CheckDoor(const Principal& principal, const std::string& method);
// Whether the caller may do it there. A trial that passes has still to prove that it is its own.
Status CheckRight(const Principal& principal, const std::string& method, const std::string& ns);

}  // namespace shirabe::service
