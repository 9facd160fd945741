// What the pods of an attempt may cost before any of them has a node. Once they have, it is
// PlacementOf (pod_scheduling.h) for each: both charge a pod its share of the node. Used by the
// executor `kubernetes`. Pure.
#pragma once

#include <vector>

#include "base/text/json_fields.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "trial/kubernetes/pod_scheduling.h"

namespace shirabe::trial {

// For an hour of all pods of `object` on the dearest machine that `place` allows: of a pool, the
// node of which they would take the largest share. Of a pool that has no node now, and whose
// machines therefore have no size that is known, each pod pays for a whole one.
double EstimatePrice(const Json& object, const PodScheduling& place, const std::vector<Json>& nodes,
                     const v1::NodePools& pools);

}  // namespace shirabe::trial
