// Which machines there are, and which attempt has which: the pools of a nodes file, each of so many
// slots, as the local executor gives them out. Pure but for what it remembers; moments are told by
// a monotonic clock. Not thread-safe: its owner locks.
//
// An attempt may use the pools that its policy names, in that order; without names all of them, the
// spot ones first, and of like ones the cheapest first. After too many preemptions it gets none but
// on-demand slots, where it may use any. A slot that was reclaimed is away for a while: no attempt
// has it, and none can.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/attempt_status.h"

namespace shirabe::trial {

class NodeSlots {
 public:
  // Of pools that experiment/spec/server_files.h finds no fault with.
  explicit NodeSlots(const v1::NodePools& pools);

  // Without pools there is nothing to give out, and no limit: none of the below is called.
  bool empty() const { return pools_.empty(); }

  // The node, pool, capacity and prices of a slot that is taken now. kResourceExhausted, in words
  // for people, if none is free now; kInvalidArgument, "cannot progress: …" with the fix, if the
  // policy leaves no pool at all.
  StatusOr<v1::Placement> Allocate(const PlacementRequest& placement_request, absl::Duration now);
  // An attempt found running has it. A node that is of no pool here is let be, as below.
  void Mark(const std::string& node);
  void Release(const std::string& node);

  // Its machine is taken away, and back at `until`.
  void SetAway(const std::string& node, absl::Duration until);
  // When the next one is back; nullopt if none is away.
  std::optional<absl::Duration> NextReturn(absl::Duration now) const;

  // What Allocate would say of a policy that leaves no pool at all; OK without pools.
  Status Check(const PlacementRequest& placement_request) const;

  // What Allocate would say now, and the highest price that it could come to.
  PlacementQuote QuotePlacement(const PlacementRequest& placement_request,
                                absl::Duration now) const;

 private:
  struct Slot {
    bool busy = false;
    absl::Duration away_until = -absl::InfiniteDuration();
  };
  struct Pool {
    v1::NodePool spec;
    std::vector<Slot> slots;
  };

  StatusOr<std::vector<int>> Allowed(const PlacementRequest& placement_request) const;
  StatusOr<std::vector<int>> Named(const v1::CapacityPolicy& policy) const;
  std::vector<int> Ordered(const v1::CapacityPolicy& policy) const;
  std::string Waiting(const std::vector<int>& allowed, absl::Duration now) const;
  std::string Occupancy(const Pool& pool, absl::Duration now) const;
  v1::Placement Place(const Pool& pool, int slot) const;
  Slot* Find(const std::string& node);

  std::vector<Pool> pools_;
  std::optional<double> on_demand_price_;  // of the cheapest on-demand pool
};

// "spot", "on-demand": the words of ledger and nodes file.
std::string CapacityWord(v1::Capacity capacity);

// The name of slot `index` of a pool, from 0.
std::string NodeName(const std::string& pool, int index);

// How an attempt is lost whose machine is taken away.
v1::Cause ReclaimCause(const v1::Placement& placement);

}  // namespace shirabe::trial
