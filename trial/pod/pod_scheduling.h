// Which nodes of a cluster an attempt may run on, what a node and a pod on it cost, and whether a
// node is about to go. Pools come from the controller's file of pools; a pool with a nodeSelector
// has the nodes with these labels, and one without has the nodes that a cloud's own labels call
// spot or on-demand: GKE, EKS, Karpenter and AKS are known. Without a file of pools those labels
// are all there is. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text/json_fields.h"
#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/attempt_status.h"
#include "trial/pod/pod_templates.h"

namespace shirabe::trial {

// The pools that the policy names, in its order; without names all of them, the spot ones first and
// of like ones the cheapest first. With `on_demand` the on-demand ones only, if any may be used.
// A StartError, kPoolMissing, with the fix, if the policy leaves none: an administrator can add
// one.
StatusOr<PodScheduling> SchedulingFor(const PlacementRequest& placement_request,
                                      const v1::NodePools& pools);

struct NodeCapacity {
  std::string pool;                                  // "" = of none
  v1::Capacity capacity = v1::CAPACITY_UNSPECIFIED;  // as far as can be told
  double price_per_hour = 0;                         // of the whole node; its own before its pool's
  double on_demand_price_per_hour = 0;               // of a node of the cheapest on-demand pool
};

// What the node itself says that it costs an hour: its annotation, or else its label, of this name.
// nullopt if it has none, or one that is no number from 0 on.
inline constexpr char kPriceAnnotation[] = "shirabe.dev/price-per-hour";
std::optional<double> OwnPriceOf(const Json& node);

// The pool whose selector asks for the most labels that this node has.
NodeCapacity NodeCapacityOf(const Json& node, const v1::NodePools& pools);

// Whether selector and terms of `place` take the node. Only as this file and scheduling_terms.cc
// write them: In and NotIn, one value each.
bool Admits(const PodScheduling& place, const Json& node);

// How much of the node is the pod's: its largest share of GPUs, CPUs or memory, by what it requests
// of what the node can give, from 0 to 1.
double ShareOf(const Json& pod, const Json& node);

// Node, pool, capacity and prices of a pod on this node. `node` may be null: it is gone.
v1::Placement PlacementOf(const Json& pod, const Json& node, const v1::NodePools& pools);

// "100m", "1.5Gi", "2e3", 4: as a number; nullopt if it is no quantity.
std::optional<double> ParseQuantity(const Json& quantity);

struct NodeWarning {
  std::string reason;  // the key of the taint or type of the condition
  std::string text;    // for people: what is about to happen
  bool hint = false;   // it may well not happen: no more than a reason to save now
};

// Whether something has announced that the node is about to be taken away; what is certain before
// what is a hint.
std::optional<NodeWarning> NodeWarningOf(const Json& node);

// Why a node counts as gone, in words, although its object is there: an administrator has said so
// (the taint node.kubernetes.io/out-of-service). "" if it does not.
std::string OutOfService(const Json& node);

// Ready, by its own word. One whose kubelet is silent is not.
bool IsReady(const Json& node);

// The labels and taints by which clouds mark nodes that they can take back. Used by
// pod_scheduling.cc and scheduling_terms.cc alone. Pure functions.
struct CloudLabel {
  const char* key;
  const char* spot;       // value on a node that can be reclaimed
  const char* on_demand;  // value on one that cannot; "" = such a node has no such label
  bool tainted = false;   // spot nodes carry it as a taint, NoSchedule, too
};

// GKE's two, EKS, Karpenter, AKS.
const std::vector<CloudLabel>& CloudLabels();

// Whether a cloud's label tells; CAPACITY_UNSPECIFIED without any, since absence proves nothing.
v1::Capacity CapacityByLabels(const Json& node);

// A value of a nodeSelector as text: true and 1 are written without quotes by many.
std::string SelectorText(const google::protobuf::Value& value);

}  // namespace shirabe::trial
