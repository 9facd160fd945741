// What the parts of the executor `kubernetes` share: the cluster as it is seen and changed, the
// executor's own settings, and its background threads. Data; the executor owns what it names, and
// all of it outlives the parts.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/names.h"
#include "kube/api_client.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "trial/attempt_status.h"
#include "trial/file_layout.h"
#include "trial/kubernetes/cluster_view.h"
#include "trial/pod/pod_options.h"

namespace shirabe::trial {

// How patient the executor `kubernetes` is. Tests are less so.
struct PodTimeouts {
  absl::Duration start = absl::Milliseconds(20);  // of a caller, for an object to be made
  absl::Duration silence = absl::Seconds(40);     // of a node that is not ready, before it is dead
  absl::Duration unseen = absl::Seconds(15);      // of a node that we were not told of
  absl::Duration final_sync = absl::Seconds(20);  // for the rest, after a program's end
  absl::Duration collector = absl::Minutes(5);    // of the user's own, to report after that
  absl::Duration stop_ack_timeout =
      absl::Milliseconds(1500);                  // for a sidecar to take a stop, before SIGTERM
  absl::Duration ask_events = absl::Seconds(5);  // of waiting, before events are looked up
  absl::Duration events_again = absl::Seconds(30);
  absl::Duration retry = absl::Seconds(2);    // what the API server did not do
  absl::Duration gather = absl::Seconds(2);   // Jobs to delete, between two requests
  absl::Duration settle = absl::Minutes(10);  // for all experiments to be owned again, at the start
  absl::Duration orphan = absl::Seconds(20);  // of a pod of no known attempt, before it goes
  absl::Duration stall = absl::Minutes(2);    // of a watch, before it is given up
  absl::Duration sync = absl::Seconds(2);     // between two requests of a sidecar
  absl::Duration prune = absl::Seconds(30);   // for a sidecar to delete what is not kept
  absl::Duration unheard = absl::Seconds(20);     // of a sidecar beside a program that runs
  absl::Duration succession = absl::Seconds(10);  // of an object, to be gone, before its successor
  absl::Duration logs = absl::Seconds(3);         // between two looks at a log, where there is none
};

struct ClusterContext {
  Clock* clock = nullptr;
  kube::Client* client = nullptr;
  ClusterView* view = nullptr;
  const FileLayout* layout = nullptr;
  const PodOptions* pods = nullptr;
  const v1::NodePools* pools = nullptr;
  PodTimeouts timeouts;
  StatusHandlers status_handlers;  // for what an operator was told, and says in its object
  // Does it soon, in a thread where it may take its time; dropped once the executor ends.
  std::function<void(std::function<void()>)> run;
  // Something is due earlier than it was: the executor's timer looks again.
  std::function<void()> wake;
  // Something about the experiment changed: ExecutorOptions::on_change. Not under a lock.
  std::function<void(const ExperimentKey&)> notify;
  // One of its attempts has written something: ExecutorOptions::on_output. Not under a lock.
  std::function<void(const ExperimentKey&)> notify_output;
};

// Between two requests of one sidecar that has nothing to say, where there are so many attempts:
// what a sidecar has, it brings at once. That it is to save now reaches it with its next request,
// within the notice of a machine that goes; a stop goes to its pod as well. And two of them are
// within `silence`, after which a sidecar on a node that is not ready is believed dead.
inline absl::Duration SyncInterval(const PodTimeouts& timeouts, size_t attempts) {
  constexpr double kSyncsPerSecond = 180;  // of all sidecars together, as long as that is possible
  constexpr absl::Duration kMost = absl::Seconds(20);
  const absl::Duration interval = absl::Seconds(static_cast<double>(attempts) / kSyncsPerSecond);
  return std::max(timeouts.sync, std::min(interval, kMost));
}

}  // namespace shirabe::trial
