// OptimizationJob objects of Kubeflow's Trainer that are annotated shirabe.dev/managed-by: shirabe:
// an Experiment object is made for each, once, which it owns, and what becomes of that is written
// into its status, as Trainer's own controller would have it. All others are left alone. What runs
// the Experiments is crd/cluster_sync.h's. Started by the leader; a thread of its own. What it
// needs outlives it.
//
// A cluster need not know the kind: it is looked for until it is there. An Experiment has its
// name from the object and says whose it is by its owner reference, so after a crash it is found,
// not made again; with the object the cluster removes it.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "kube/api_client.h"

namespace shirabe::crd {

struct OptimizationSyncOptions {
  kube::Client* kube = nullptr;
  Clock* clock = nullptr;
  std::string namespace_name;                  // only this one; "" = all
  std::string instance;                        // this process, for events
  absl::Duration interval = absl::Seconds(1);  // between two looks
  absl::Duration absent = absl::Seconds(15);   // between two looks for the kind
};

class OptimizationSync {
 public:
  // Returns at once; what is wrong, it says and tries again.
  static std::unique_ptr<OptimizationSync> Start(OptimizationSyncOptions options);
  virtual ~OptimizationSync() = default;
};

}  // namespace shirabe::crd
