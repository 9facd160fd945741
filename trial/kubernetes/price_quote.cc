#include "trial/kubernetes/price_quote.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "trial/pod/pod_build.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kQuoteTtl = absl::Seconds(5);

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

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
  double price = 0;
  std::set<std::string> seen;  // pools that have a node
  for (const Json& node : nodes) {
    const NodeCapacity capacity = NodeCapacityOf(node, pools);
    if (place.pools.empty() ? !Admits(place, node) : !Contains(place.pools, capacity.pool)) {
      continue;
    }
    seen.insert(capacity.pool);
    if (capacity.price_per_hour == 0) continue;
    price = std::max(price, capacity.price_per_hour * SharesOf(samples, node));
  }
  for (const v1::NodePool& pool : pools.pools()) {
    if (seen.contains(pool.name()) || !Contains(place.pools, pool.name())) continue;
    price = std::max(price, pool.price_per_hour() * whole);
  }
  return price;
}

double PriceQuotes::Estimate(const google::protobuf::Struct& trial_spec,
                             const PlacementRequest& request) {
  const auto place = SchedulingFor(request, *context_.pools);
  if (!place.ok()) return 0;
  if (place->price_per_hour == 0 && !context_.view->AnyNodeHasPrice()) return 0;
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
