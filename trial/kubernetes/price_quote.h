// What the pods of an attempt may cost before any of them has a node. Once they have, it is
// PlacementOf (pod_scheduling.h) for each: both charge a pod its share of the node. Used by the
// executor `kubernetes`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"
#include "base/text/json_fields.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "trial/kubernetes/cluster_context.h"
#include "trial/pod/pod_scheduling.h"

namespace shirabe::trial {

// For an hour of all pods of `object` on the dearest node that `place` allows, by their share of
// it; without pools, of those that say themselves what they cost. Of a pool that has no node now,
// and whose machines therefore have no size that is known, each pod pays for a whole one. Pure.
double EstimatePrice(const Json& object, const PodScheduling& place, const std::vector<Json>& nodes,
                     const v1::NodePools& pools);

// The same for the nodes of now. What it has answered stands for a while, since it looks at every
// node. Thread-safe.
class PriceQuotes {
 public:
  // The context outlives it.
  explicit PriceQuotes(const ClusterContext* context) : context_(*context) {}

  // 0 where nothing has a price, and where no pool may be used.
  double Estimate(const google::protobuf::Struct& trial_spec, const PlacementRequest& request);

 private:
  struct Quote {
    double price_per_hour = 0;
    absl::Duration until;  // monotonic
  };

  const ClusterContext& context_;
  Mutex mutex_;
  std::map<std::string, Quote> quotes_ ABSL_GUARDED_BY(mutex_);  // by object and pools
};

}  // namespace shirabe::trial
