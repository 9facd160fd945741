// The labels and taints by which clouds mark nodes that they can take back. Used by the files
// capacity*.cc alone. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "trial/pod_json.h"

namespace shirabe::trial {

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
