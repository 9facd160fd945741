// ScheduledExperiment objects of a cluster: starts an Experiment object for each at its times, as
// CronJob makes Jobs, deletes those beyond the history limits, and writes status and events. What
// becomes of the Experiments is crd/cluster_sync.h's. Started by the leader; a thread of its own.
// What it needs outlives it.
//
// One is started at once where the object has the annotation schedule::kRunNow, whatever its times
// and policies say; the annotation is taken off then.
//
// An Experiment is named after its scheduled time, and says whose it is by its owner reference: so
// after a crash between making it and noting that in the status, it is found and noted, not made
// again. Before each start the object is read from the server itself.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "kube/api_client.h"

namespace shirabe::crd {

struct ScheduleSyncOptions {
  kube::Client* kube = nullptr;
  Clock* clock = nullptr;
  std::string namespace_name;                  // only this one; "" = all
  std::string instance;                        // this process, for events
  absl::Duration interval = absl::Seconds(1);  // between two looks
};

class ScheduleSync {
 public:
  // Returns at once; what is wrong, it says and tries again.
  static std::unique_ptr<ScheduleSync> Start(ScheduleSyncOptions options);
  virtual ~ScheduleSync() = default;
};

}  // namespace shirabe::crd
