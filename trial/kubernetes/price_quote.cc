#include "trial/kubernetes/price_quote.h"

#include <algorithm>
#include <map>
#include <string>

#include "trial/pod/pod_build.h"

namespace shirabe::trial {
namespace {

double SharesOf(const std::vector<SamplePod>& samples, const Json& node) {
  double shares = 0;
  for (const SamplePod& sample : samples) {
    shares += ShareOf(sample.pod, node) * static_cast<double>(sample.count);
  }
  return shares;
}

}  // namespace

double EstimatePrice(const Json& object, const PodScheduling& place, const std::vector<Json>& nodes,
                     const v1::NodePools& pools) {
  const std::vector<SamplePod> samples = SamplePods(object);
  double whole = 0;
  for (const SamplePod& sample : samples) whole += static_cast<double>(sample.count);
  std::map<std::string, double> shares;  // the largest, by pool
  for (const Json& node : nodes) {
    const std::string pool = NodeCapacityOf(node, pools).pool;
    if (pool.empty()) continue;
    double& most = shares[pool];
    most = std::max(most, SharesOf(samples, node));
  }
  double price = 0;
  for (const v1::NodePool& pool : pools.pools()) {
    const auto& allowed = place.pools;
    if (std::find(allowed.begin(), allowed.end(), pool.name()) == allowed.end()) continue;
    const auto found = shares.find(pool.name());
    const double share = found == shares.end() ? whole : found->second;
    price = std::max(price, pool.price_per_hour() * share);
  }
  return price;
}

}  // namespace shirabe::trial
