// `shirabe pod sidecar`: stands beside the program of an attempt for as long as the pod lives. It
// sends what the program writes to the server, commits the checkpoints that it saves, tells how it
// ended, and passes on what the server wants of it. It has no memory of its own: killed at any
// moment, its successor asks the server how much it has and goes on there.
//
// The program never waits for it. If the server is away, nothing is lost as long as the pod lives;
// when the pod's grace is nearly over, what was not sent is printed (trial/pod/final_sync_log.h).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "metrics/collector.h"
#include "sidecar/pod_config.h"
#include "sidecar/server_link.h"
#include "sidecar/store_access.h"
#include "trial/checkpoint/checkpoint_copier.h"
#include "trial/pod/pod_names.h"

namespace shirabe::sidecar {

// As long as the pod waits for copies (trial::kCopyTime): a controller that is away for some
// minutes costs none. With the pod, what was not copied would be gone for good.
inline trial::CopyRetries PodCopyRetries() {
  return {.checkpoints = {.attempts = 34,
                          .backoff = {.first = absl::Seconds(2), .max = absl::Seconds(15)}}};
}

struct SidecarOptions {
  const Pod* pod = nullptr;
  ServerLink* link = nullptr;
  Clock* clock = nullptr;
  PodStores stores = {};  // that its checkpoints and outputs go to
  trial::CopyRetries copies = PodCopyRetries();
  absl::Duration copy_time = trial::kCopyTime;      // for them, once the program has ended
  std::function<void(const std::string&)> print;    // to our own log
  absl::Duration interval = absl::Seconds(1);       // new bytes are sent once in so long,
  absl::Duration urgent = absl::Milliseconds(250);  // and near the end
  absl::Duration patience = absl::Seconds(5);       // with one call
  absl::Duration stay = absl::Seconds(5);           // before it makes way for a collector
};

// Until `stop` (SIGTERM) is asked for and all has been sent, or the time for it is over. Beside a
// collector of the user's own, which may wait until no process of the pod is left but its own, also
// once the program has ended and all has been sent; the kubelet starts it again, and again there is
// nothing to send. All three pointers outlive the call.
void RunSidecar(const SidecarOptions& options, std::stop_token stop);

// `shirabe pod stop`: tells the sidecar of this pod that the pod is about to end, so that it sends
// more often.
Status SignalStop(const Pod& pod);

// Asks the program for the metrics that it serves over HTTP (collector_traits.h), here in its pod,
// where its address is 127.0.0.1; what was heard goes to the scrapes file, which is sent like the
// others. Nothing for other collectors. Used by the sidecar's thread.
class MetricsScraper {
 public:
  explicit MetricsScraper(const Pod& pod);
  // To be called at least once in a few seconds; with `ended`, nothing is written any more.
  void Tick(bool ended);
  const std::string& last_error() const { return last_error_; }

 private:
  std::unique_ptr<metrics::Collector> collector_;  // null = nothing to ask for
  metrics::Source source_;
  std::string last_error_;
};

}  // namespace shirabe::sidecar
