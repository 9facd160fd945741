#include "trial/node_slots.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sorting.h"

namespace shirabe::trial {
namespace {

bool IsSpot(const v1::NodePool& pool) { return pool.capacity() == v1::SPOT; }

Status CannotProgress(const std::string& why) {
  return absl::InvalidArgumentError("cannot progress: " + why);
}

}  // namespace

std::string CapacityWord(v1::Capacity capacity) {
  return capacity == v1::SPOT ? "spot" : "on-demand";
}

std::string NodeName(const std::string& pool, int index) { return absl::StrCat(pool, "-", index); }

v1::Cause ReclaimCause(const v1::Placement& placement) {
  return placement.capacity() == CapacityWord(v1::SPOT) ? v1::PREEMPTED_SPOT : v1::PREEMPTED_NODE;
}

NodeSlots::NodeSlots(const v1::NodePools& pools) {
  for (const v1::NodePool& pool : pools.pools()) {
    const int slots = pool.has_slots() ? std::max(pool.slots(), 0) : 1;
    pools_.push_back({pool, std::vector<Slot>(static_cast<size_t>(slots))});
    if (IsSpot(pool)) continue;
    on_demand_price_ =
        std::min(on_demand_price_.value_or(pool.price_per_hour()), pool.price_per_hour());
  }
}

// ---- which pools --------------------------------------------------------------------------------

// Those that the policy names, in its order.
StatusOr<std::vector<int>> NodeSlots::Named(const v1::CapacityPolicy& policy) const {
  std::vector<int> named;
  std::vector<std::string> known;
  for (const Pool& pool : pools_) known.push_back(pool.spec.name());
  for (const std::string& name : policy.pools()) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      return CannotProgress(absl::StrCat(
          "spec.shirabe.capacity.pools names \"", name,
          "\", and the nodes file has no such pool; it has: ", absl::StrJoin(known, ", ")));
    }
    named.push_back(static_cast<int>(found - known.begin()));
  }
  return named;
}

// All of them, in the order of a policy that names none.
std::vector<int> NodeSlots::Ordered(const v1::CapacityPolicy& policy) const {
  std::vector<int> all;
  for (int i = 0; i < static_cast<int>(pools_.size()); ++i) all.push_back(i);
  const bool spot_first = policy.spot() != v1::SPOT_NEVER;
  StableSort(all, [&](int a, int b) {
    const v1::NodePool &left = pools_[a].spec, &right = pools_[b].spec;
    if (IsSpot(left) != IsSpot(right)) return IsSpot(left) == spot_first;
    return left.price_per_hour() < right.price_per_hour();
  });
  return all;
}

StatusOr<std::vector<int>> NodeSlots::Allowed(const PlacementRequest& placement_request) const {
  const v1::CapacityPolicy& policy = placement_request.policy;
  ASSIGN_OR_RETURN(std::vector<int> pools, Named(policy));
  if (pools.empty()) pools = Ordered(policy);
  const std::string among = policy.pools().empty()
                                ? "no pool of the nodes file"
                                : "none of the pools in spec.shirabe.capacity.pools";
  const auto keep = [&](bool spot) {
    std::vector<int> kept;
    for (const int i : pools) {
      if (IsSpot(pools_[i].spec) == spot) kept.push_back(i);
    }
    return kept;
  };
  if (policy.spot() == v1::REQUIRED) {
    pools = keep(/*spot=*/true);
    if (!pools.empty()) return pools;
    return CannotProgress("spec.shirabe.capacity.spot is required and " + among +
                          " is spot: give one capacity: spot, or set spot to preferred");
  }
  std::vector<int> on_demand = keep(/*spot=*/false);
  if (policy.spot() == v1::SPOT_NEVER) {
    if (!on_demand.empty()) return on_demand;
    return CannotProgress("spec.shirabe.capacity.spot is never and " + among +
                          " is on-demand: give one capacity: on-demand, or set spot to preferred");
  }
  return placement_request.on_demand && !on_demand.empty() ? on_demand : pools;
}

Status NodeSlots::Check(const PlacementRequest& placement_request) const {
  return pools_.empty() ? absl::OkStatus() : Allowed(placement_request).status();
}

// ---- giving out ---------------------------------------------------------------------------------

v1::Placement NodeSlots::Place(const Pool& pool, int slot) const {
  v1::Placement placement;
  const double price = pool.spec.price_per_hour();
  placement.set_node(NodeName(pool.spec.name(), slot));
  placement.set_pool(pool.spec.name());
  placement.set_capacity(CapacityWord(pool.spec.capacity()));
  placement.set_price_per_hour(price);
  placement.set_on_demand_price_per_hour(on_demand_price_.value_or(price));
  return placement;
}

StatusOr<v1::Placement> NodeSlots::Allocate(const PlacementRequest& placement_request,
                                            absl::Duration now) {
  ASSIGN_OR_RETURN(const std::vector<int> allowed, Allowed(placement_request));
  for (const int i : allowed) {
    std::vector<Slot>& slots = pools_[i].slots;
    const auto free = std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) {
      return !slot.busy && slot.away_until <= now;
    });
    if (free == slots.end()) continue;
    free->busy = true;
    return Place(pools_[i], static_cast<int>(free - slots.begin()));
  }
  return absl::ResourceExhaustedError(Waiting(allowed, now));
}

// Null if it is of no pool.
NodeSlots::Slot* NodeSlots::Find(const std::string& node) {
  const size_t dash = node.rfind('-');
  if (dash == std::string::npos) return nullptr;
  int index = -1;
  std::from_chars(node.data() + dash + 1, node.data() + node.size(), index);
  for (Pool& pool : pools_) {
    const bool within = index >= 0 && index < static_cast<int>(pool.slots.size());
    if (within && NodeName(pool.spec.name(), index) == node) return &pool.slots[index];
  }
  return nullptr;
}

void NodeSlots::Mark(const std::string& node) {
  if (Slot* slot = Find(node)) slot->busy = true;
}

void NodeSlots::Release(const std::string& node) {
  if (Slot* slot = Find(node)) slot->busy = false;
}

void NodeSlots::SetAway(const std::string& node, absl::Duration until) {
  if (Slot* slot = Find(node)) slot->away_until = std::max(slot->away_until, until);
}

std::optional<absl::Duration> NodeSlots::NextReturn(absl::Duration now) const {
  std::optional<absl::Duration> next;
  for (const Pool& pool : pools_) {
    for (const Slot& slot : pool.slots) {
      if (slot.away_until > now) next = std::min(next.value_or(slot.away_until), slot.away_until);
    }
  }
  return next;
}

// ---- words --------------------------------------------------------------------------------------

// "2 of 3 busy, 1 returns in 12 s". A slot whose attempt is being taken away counts as busy.
std::string NodeSlots::Occupancy(const Pool& pool, absl::Duration now) const {
  int busy = 0, away = 0;
  absl::Duration first = absl::InfiniteDuration();
  for (const Slot& slot : pool.slots) {
    if (slot.busy) ++busy;
    if (slot.busy || slot.away_until <= now) continue;
    ++away;
    first = std::min(first, slot.away_until - now);
  }
  std::string text = absl::StrCat(busy, " of ", pool.slots.size(), " busy");
  if (away == 0) return text;
  return absl::StrCat(text, ", ", away, away == 1 ? " returns in " : " return from ",
                      std::ceil(absl::ToDoubleSeconds(first)), away == 1 ? " s" : " s on");
}

std::string NodeSlots::Waiting(const std::vector<int>& allowed, absl::Duration now) const {
  std::vector<std::string> parts;
  for (const int i : allowed) {
    parts.push_back(absl::StrCat(pools_[i].spec.name(), " (", Occupancy(pools_[i], now), ")"));
  }
  return absl::StrCat("no free slot in pool ", absl::StrJoin(parts, " or "));
}

PlacementQuote NodeSlots::QuotePlacement(const PlacementRequest& placement_request,
                                         absl::Duration now) const {
  const auto allowed = Allowed(placement_request);
  if (!allowed.ok()) return {.waiting = Message(allowed.status())};
  PlacementQuote quote;
  bool free = false;
  for (const int i : *allowed) {
    quote.price_per_hour = std::max(quote.price_per_hour, pools_[i].spec.price_per_hour());
    for (const Slot& slot : pools_[i].slots) free |= !slot.busy && slot.away_until <= now;
  }
  if (!free) quote.waiting = Waiting(*allowed, now);
  return quote;
}

}  // namespace shirabe::trial
