// How the object of an attempt takes the place of that of an earlier one, where all attempts of a
// trial have an object of one name (trial/pod/operator_kinds.h): the earlier one is deleted, and
// the next is made once it is gone from the API server, with the JobSet that has its name. Else
// its operator would take what the old one has come to for the state of the new one. Each step may
// be done twice, by any process, after any crash. Used by the executor `kubernetes`; thread-safe;
// calls block, at most for PodTimeouts::succession.
#pragma once

#include "base/status.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/cluster_context.h"

namespace shirabe::trial {

// OK once nothing that has the name of `next`, which is to be made, is left of an earlier attempt
// of its trial. What is not of one stays, and CreateOrAdopt says so. Of an attempt before the
// current one all is stored, so its pods are let go. kResourceExhausted, in words, where it does
// not go; kUnavailable where the API server does not answer.
Status RemovePredecessor(const ClusterContext& context, const kube::Ref& ref, const Json& next);

}  // namespace shirabe::trial
