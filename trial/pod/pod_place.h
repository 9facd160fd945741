// Where a pod may run, and how that is written into its specification.
// trial/kubernetes/pod_scheduling.h decides it. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/text/json_fields.h"

namespace shirabe::trial {

// What goes into the specification of a pod.
struct PodScheduling {
  Json node_selector = Json::object();  // labels that the node must have
  Json required = Json::array();        // nodeSelectorTerms: one of them must hold, if any
  Json preferred = Json::array();       // PreferredSchedulingTerms
  Json tolerations = Json::array();
  std::vector<std::string> pools;  // names, in order of preference; none = whatever there is
  double price_per_hour = 0;       // of the dearest node it may get, as far as pools tell
};

// Adds it to a pod's specification (`spec` of a Pod or of a pod template): what the user wrote
// there holds as well. kInvalidArgument, naming the label, where the two exclude each other.
Status ApplyScheduling(const PodScheduling& place, Json& pod_spec);

// kInvalidArgument, "cannot progress: WHY".
Status CannotProgress(const std::string& why);

}  // namespace shirabe::trial
