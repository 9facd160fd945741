// What the executor `kubernetes` does about the volume that the checkpoints of an experiment lie
// on, beside mounting it: whether it will do for all trials, and how it is cleaned. Each asks the
// API server and takes as long as that takes. Thread-safe: no state.
#pragma once

#include "base/names.h"
#include "base/status.h"
#include "base/text/json_fields.h"
#include "kube/api_client.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::trial {

// Whether the claim that the trials share can be mounted by so many pods on so many nodes; asked
// before the experiment is accepted. kInvalidArgument, with field, value and fix: never.
// kFailedPrecondition, with the fix: not yet, it is not there. Anything else: it could not be found
// out. The modes stand in the claim alone: a copy of them in the experiment would only be a second
// thing to be wrong.
Status CheckSharedClaim(kube::Client& client, const ExperimentKey& experiment,
                        const v1::ExperimentSpec& spec);

// Has the Job (volume_jobs.h) run, now or once more. OK as soon as it is on its way, and where its
// namespace, and so the claim, is gone. kUnavailable and kResourceExhausted: try again.
Status StartCleaner(kube::Client& client, const Json& cleaner);

// Has the Job of that name run with this list of checkpoints (volume_jobs.h). True once it has
// deleted them, and is gone itself; false: not yet. An error: ask again later, it begins anew.
StatusOr<bool> RunPruner(kube::Client& client, const Json& pruner);

// OK unless old files of an experiment of this name are being deleted, or could not be:
// kResourceExhausted, with what to do.
Status CheckCleaned(kube::Client& client, const ExperimentKey& experiment);

}  // namespace shirabe::trial
