// Katib's DBManager: the program that runs a trial reports what it observed, and reads it again.
// Made by the server, once for its own port, where `access` finds out who calls, and once more for
// --katib-listen, where Katib's pushers, which have no token, act for the namespace of the pod at
// their address. Any number of calls at a time.
//
// Ours add fields that Katib's programs do not have: ReportObservationLogRequest.attempt (1001) and
// .token (1002), MetricLog.step (1001). Times are RFC 3339; an empty one is now. A value that is no
// number refuses the whole report, which can then be sent again without it. Errors:
// INVALID_ARGUMENT with the field, those of `access`, and those of katib_observations.h.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "base/clock.h"
#include "service/katib/katib_observations.h"

namespace shirabe::service {

// `clock` outlives the service.
std::unique_ptr<grpc::Service> MakeKatibDbManager(KatibAccess access, Clock* clock);

}  // namespace shirabe::service
