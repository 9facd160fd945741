// Katib's Suggestion service for every registered algorithm. Stateless: an answer follows from its
// request alone, so that a request repeated, or sent by two at once, is answered the same, after a
// restart too. Made once by the server; any number of calls at a time.
//
// The seed is the setting random_state, else it follows from the experiment's name, as for an
// experiment of ours in namespace "default"; the i-th suggestion of an experiment, counted by
// total_request_number, has the i-th stream of it. With the same trials a client is given the
// points that `shirabe run` would try, but for an algorithm that goes on from a memo, which this
// wire cannot carry: it finds from the trials where to go on from (suggestion/gp/fit_chain.h). What
// it remembers of earlier requests is found by a digest of all that it follows from.
//
// GetSuggestions answers OK with fewer points than asked for where an algorithm has no more now, or
// none ever: Katib's controller then asks again. The trailing metadata say which and why:
//   shirabe-outcome    ok, wait or exhausted
//   shirabe-reason     why there are fewer, and which settings and trials were left out, in words
//   shirabe-left-out   trials of the request that are not points of the search space
//   shirabe-algorithm  which one `auto` chose, and why
// A call computes only while its caller waits, and in its turn
// (service/common/suggestion_scheduler.h). Errors: INVALID_ARGUMENT with the field,
// RESOURCE_EXHAUSTED with the limit, those of `gate`.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>

#include "base/status.h"
#include "service/common/suggestion_scheduler.h"

namespace shirabe::service {

// Who makes this call, by the name of its share of the machine: kUnauthenticated,
// kPermissionDenied. `method` as the table of rights has it, without the package. Any thread.
using KatibGate =
    std::function<StatusOr<std::string>(const grpc::ServerContext&, const std::string& method)>;

// The turns outlive the service.
std::unique_ptr<grpc::Service> MakeKatibSuggestion(KatibGate gate, SuggestionScheduler* turns);

}  // namespace shirabe::service
