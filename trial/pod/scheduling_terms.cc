// Where an attempt may run: from the policy and the pools to selectors, affinity and tolerations.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sorting.h"
#include "kube/json_access.h"
#include "trial/pod/pod_scheduling.h"
#include "trial/start_error.h"

namespace shirabe::trial {
namespace {

using Pools = std::vector<const v1::NodePool*>;

constexpr int kMaxWeight = 100;

bool IsSpot(const v1::NodePool& pool) { return pool.capacity() == v1::SPOT; }

Json Expression(const std::string& key, const char* op, const std::string& value) {
  return {{"key", key}, {"operator", op}, {"values", Json::array({value})}};
}

Json Term(Json expressions) { return {{"matchExpressions", std::move(expressions)}}; }

// ---- which pools --------------------------------------------------------------------------------

// The administrator may bring it back, as after an upgrade that lost the file of --nodes.
Status NoPool(const std::string& why) {
  return StartError(absl::StatusCode::kResourceExhausted, kPoolMissing,
                    Message(CannotProgress(why)));
}

StatusOr<Pools> NamedPools(const v1::CapacityPolicy& policy, const v1::NodePools& pools) {
  Pools named;
  for (const std::string& name : policy.pools()) {
    const v1::NodePool* found = nullptr;
    std::vector<std::string> known;
    for (const v1::NodePool& pool : pools.pools()) {
      known.push_back(pool.name());
      if (pool.name() == name) found = &pool;
    }
    if (found == nullptr) {
      return NoPool(absl::StrCat("spec.shirabe.capacity.pools names \"", name,
                                 "\", and the controller knows no such pool; it has: ",
                                 known.empty() ? "none" : absl::StrJoin(known, ", ")));
    }
    named.push_back(found);
  }
  return named;
}

Pools Ordered(const v1::CapacityPolicy& policy, const v1::NodePools& pools) {
  Pools all;
  for (const v1::NodePool& pool : pools.pools()) all.push_back(&pool);
  const bool spot_first = policy.spot() != v1::SPOT_NEVER;
  StableSort(all, [&](const auto* a, const auto* b) {
    if (IsSpot(*a) != IsSpot(*b)) return IsSpot(*a) == spot_first;
    return a->price_per_hour() < b->price_per_hour();
  });
  return all;
}

Pools Keep(const Pools& pools, bool spot) {
  Pools kept;
  for (const v1::NodePool* pool : pools) {
    if (IsSpot(*pool) == spot) kept.push_back(pool);
  }
  return kept;
}

StatusOr<Pools> Allowed(const PlacementRequest& placement_request, const v1::NodePools& pools) {
  const v1::CapacityPolicy& policy = placement_request.policy;
  ASSIGN_OR_RETURN(Pools allowed, NamedPools(policy, pools));
  if (allowed.empty()) allowed = Ordered(policy, pools);
  const std::string among = policy.pools().empty()
                                ? "no pool of the controller"
                                : "none of the pools in spec.shirabe.capacity.pools";
  if (policy.spot() == v1::REQUIRED) {
    allowed = Keep(allowed, /*spot=*/true);
    if (!allowed.empty()) return allowed;
    return NoPool("spec.shirabe.capacity.spot is required and " + among +
                  " is spot: give one capacity: spot, or set spot to preferred");
  }
  const Pools on_demand = Keep(allowed, /*spot=*/false);
  if (policy.spot() == v1::SPOT_NEVER) {
    if (!on_demand.empty()) return on_demand;
    return NoPool("spec.shirabe.capacity.spot is never and " + among +
                  " is on-demand: give one capacity: on-demand, or set spot to preferred");
  }
  return placement_request.on_demand && !on_demand.empty() ? on_demand : allowed;
}

// ---- what a cloud's labels say ------------------------------------------------------------------

// One for each cloud: a node is spot if any of its labels says so.
Json SpotTerms() {
  Json terms = Json::array();
  for (const CloudLabel& label : CloudLabels()) {
    terms.push_back(Term(Json::array({Expression(label.key, "In", label.spot)})));
  }
  return terms;
}

// A node without the label fits: it is not known to be spot.
Json OnDemandTerm() {
  Json expressions = Json::array();
  for (const CloudLabel& label : CloudLabels()) {
    expressions.push_back(Expression(label.key, "NotIn", label.spot));
  }
  return Term(std::move(expressions));
}

void AddToleration(const Json& toleration, PodScheduling& place) {
  const Json& all = place.tolerations;
  if (std::find(all.begin(), all.end(), toleration) != all.end()) return;
  place.tolerations.push_back(toleration);
}

void TolerateSpot(PodScheduling& place) {
  for (const CloudLabel& label : CloudLabels()) {
    if (!label.tainted) continue;
    AddToleration({{"key", label.key},
                   {"operator", "Equal"},
                   {"value", label.spot},
                   {"effect", "NoSchedule"}},
                  place);
  }
}

void Prefer(const Json& term, int weight, PodScheduling& place) {
  place.preferred.push_back({{"weight", std::max(weight, 1)}, {"preference", term}});
}

// Nothing but the clouds' labels to go by. After too many losses an on-demand node is demanded only
// of who has said that there are two kinds: elsewhere the cluster may have nothing but spot nodes,
// and the trial would wait forever.
PodScheduling SchedulingByLabels(const PlacementRequest& placement_request) {
  PodScheduling place;
  const v1::SpotPolicy spot = placement_request.policy.spot();
  if (spot == v1::REQUIRED) {
    place.required = SpotTerms();
  } else if (spot == v1::SPOT_NEVER || (placement_request.on_demand && spot == v1::PREFERRED)) {
    place.required.push_back(OnDemandTerm());
    return place;
  } else if (placement_request.on_demand) {
    Prefer(OnDemandTerm(), kMaxWeight, place);
  } else if (spot == v1::PREFERRED) {
    for (const Json& term : SpotTerms()) Prefer(term, kMaxWeight, place);
  } else {
    return place;
  }
  TolerateSpot(place);
  return place;
}

// ---- pools --------------------------------------------------------------------------------------

Json SelectorOf(const v1::NodePool& pool) {
  Json selector = Json::object();
  for (const auto& [key, value] : pool.node_selector().fields()) {
    selector[key] = SelectorText(value);
  }
  return selector;
}

// The nodes of the pool, as terms of which one must hold.
Json TermsOf(const v1::NodePool& pool) {
  if (pool.node_selector().fields_size() == 0) {
    return IsSpot(pool) ? SpotTerms() : Json::array({OnDemandTerm()});
  }
  Json expressions = Json::array();
  const Json selector = SelectorOf(pool);
  for (const auto& [key, value] : selector.items()) {
    expressions.push_back(Expression(key, "In", Text(value)));
  }
  return Json::array({Term(std::move(expressions))});
}

void AddPool(const v1::NodePool& pool, PodScheduling& place) {
  place.pools.push_back(pool.name());
  place.price_per_hour = std::max(place.price_per_hour, pool.price_per_hour());
  for (const auto& toleration : pool.tolerations()) AddToleration(FromStruct(toleration), place);
  if (IsSpot(pool)) TolerateSpot(place);
}

PodScheduling SchedulingInPools(const Pools& pools) {
  PodScheduling place;
  for (const v1::NodePool* pool : pools) AddPool(*pool, place);
  if (pools.size() == 1 && pools[0]->node_selector().fields_size() > 0) {
    place.node_selector = SelectorOf(*pools[0]);
    return place;
  }
  int rank = 0;
  for (const v1::NodePool* pool : pools) {
    // The last is what is left when none of the others is to be had.
    const int weight = kMaxWeight - rank * kMaxWeight / static_cast<int>(pools.size());
    const bool last = ++rank == static_cast<int>(pools.size());
    for (const Json& term : TermsOf(*pool)) {
      place.required.push_back(term);
      if (!last) Prefer(term, weight, place);
    }
  }
  return place;
}

constexpr char kOutOfService[] = "node.kubernetes.io/out-of-service";

struct Sign {
  const char* taint;  // key
  const char* text;
  bool hint = false;
};

const std::vector<Sign>& Signs() {
  static const std::vector<Sign> kSigns = {
      {kOutOfService, "it was declared out of service"},
      {"cloud.google.com/impending-node-termination", "Google Cloud is about to take it back"},
      {"aws-node-termination-handler/spot-itn", "AWS reclaims this spot instance within 2 minutes"},
      {"aws-node-termination-handler/asg-lifecycle-termination",
       "its auto-scaling group is terminating it"},
      {"aws-node-termination-handler/scheduled-maintenance", "AWS has scheduled its maintenance"},
      {"aws-node-termination-handler/rebalance-recommendation",
       "AWS sees a raised risk of a spot interruption", /*hint=*/true},
      {"remediator.kubernetes.azure.com/unschedulable", "Azure is taking this node back"},
      {"karpenter.sh/disrupted", "Karpenter is replacing it"},
      {"karpenter.sh/disruption", "Karpenter is replacing it"},
      {"ToBeDeletedByClusterAutoscaler", "the cluster autoscaler is removing it"},
      {"DeletionCandidateOfClusterAutoscaler", "the cluster autoscaler may remove it",
       /*hint=*/true},
      {"node.cloudprovider.kubernetes.io/shutdown", "its machine is shut down"},
  };
  return kSigns;
}

const Json& TaintsOf(const Json& node) { return Items(At(node, {"spec", "taints"})); }

std::optional<NodeWarning> NodeWarningOf(const Json& node, bool hint) {
  for (const Sign& sign : Signs()) {
    if (sign.hint != hint || ItemBy(TaintsOf(node), "key", sign.taint).is_null()) continue;
    return NodeWarning{.reason = sign.taint, .text = sign.text, .hint = hint};
  }
  return std::nullopt;
}

// The kubelet says so in its Ready condition while it ends the pods.
std::optional<NodeWarning> ShuttingDown(const Json& node) {
  const Json& ready = kube::Condition(node, "Ready");
  const bool says = absl::StrContains(Text(ready, {"message"}), "node is shutting down");
  if (Text(ready, {"status"}) == "True" || !says) return std::nullopt;
  return NodeWarning{.reason = "NodeShutdown", .text = "the node is shutting down"};
}

}  // namespace

StatusOr<PodScheduling> SchedulingFor(const PlacementRequest& placement_request,
                                      const v1::NodePools& pools) {
  if (pools.pools().empty() && placement_request.policy.pools().empty())
    return SchedulingByLabels(placement_request);
  ASSIGN_OR_RETURN(const Pools allowed, Allowed(placement_request, pools));
  return SchedulingInPools(allowed);
}

// What announces that a node is about to be taken away.

std::optional<NodeWarning> NodeWarningOf(const Json& node) {
  if (auto warning = NodeWarningOf(node, /*hint=*/false)) return warning;
  if (auto warning = ShuttingDown(node)) return warning;
  return NodeWarningOf(node, /*hint=*/true);
}

std::string OutOfService(const Json& node) {
  const Json& taint = ItemBy(TaintsOf(node), "key", kOutOfService);
  if (taint.is_null()) return "";
  const std::string value = Text(taint, {"value"});
  return absl::StrCat("the node was declared out of service", value.empty() ? "" : ": ", value);
}

bool IsReady(const Json& node) {
  return Text(kube::Condition(node, "Ready"), {"status"}) == "True";
}

}  // namespace shirabe::trial
