#include "trial/kubernetes/price_quote.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trial/pod/pod_build.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kQuoteTtl = absl::Seconds(5);

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

double PriceQuotes::Estimate(const google::protobuf::Struct& trial_spec,
                             const PlacementRequest& request) {
  const auto place = SchedulingFor(request, *context_.pools);
  if (!place.ok() || place->price_per_hour == 0) return 0;
  const std::string question =
      absl::StrCat(trial_spec.SerializeAsString(), absl::StrJoin(place->pools, ","));
  const absl::Duration now = context_.clock->Monotonic();
  {
    const MutexLock lock(mutex_);
    const auto known = quotes_.find(question);
    if (known != quotes_.end() && now < known->second.until) return known->second.price_per_hour;
  }
  const double price =
      EstimatePrice(FromStruct(trial_spec), *place, context_.view->AllNodes(), *context_.pools);
  const MutexLock lock(mutex_);
  std::erase_if(quotes_, [&](const auto& entry) { return entry.second.until <= now; });
  quotes_[question] = {price, now + kQuoteTtl};
  return price;
}

}  // namespace shirabe::trial
