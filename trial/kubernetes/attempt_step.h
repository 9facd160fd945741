// One look at an attempt of the executor `kubernetes`: what everything that the cluster shows of it
// comes to, and what is to be done. All that happens, a change in the cluster, a report of a
// sidecar, a moment that has come, leads to a step, which looks at everything there is; so a missed
// or doubled event, a stale copy and a restart cost nothing but time. Pure: the same facts and
// attempt give the same step. attempt_watcher.h gathers the facts and does what a step asks for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/text/json_fields.h"
#include "trial/kubernetes/cluster_context.h"
#include "trial/kubernetes/pod_attempt.h"
#include "trial/pod/pod_scheduling.h"

namespace shirabe::trial {

// What the cluster shows of an attempt at one moment.
struct AttemptFacts {
  absl::Duration now;  // monotonic
  absl::Time time;
  bool synced = false;         // what is not among these objects and pods is not there
  bool nodes_known = false;    // the same of nodes
  bool nodes_refused = false;  // we may not look at them
  std::optional<Json> object;
  std::vector<Json> pods;
  std::map<std::string, Json> nodes;  // of these pods and of the one that has vanished, by name
  absl::Duration sync_interval;       // between two requests of its sidecar
};

// What the facts are held against. Both outlive it.
struct StepRules {
  const PodTimeouts& timeouts;
  const v1::NodePools& pools;
};

struct AttemptStep {
  // The facts show its object, which is not bound yet: bind it and step again.
  bool bind = false;
  // What is known of it from now on.
  AttemptStatus observed;
  AttemptProgress progress;
  bool never_began = false;
  std::optional<absl::Duration> check_at;  // monotonic; it is to be looked at again
  // What is to be done, each in the background.
  bool confirm_gone = false;           // ask the API server whether its object is gone
  bool look_up_events = false;         // only they may say why it waits
  std::optional<NodeWarning> warning;  // its node is about to go: ask for a checkpoint
  bool read_remainder = false;         // of `pod`: its program has ended, and more may have come
  bool follow_log = false;             // of `pod`, which has no sidecar
  bool ask_sidecar = false;            // its log says why it is not heard of
  std::optional<Json> pod;             // the primary one
  struct PodsEnd {
    bool object_too = false;
    bool suspend = false;  // instead: its operator ends them, and the object stays
    absl::Duration grace;
  };
  std::optional<PodsEnd> end_pods;  // all those of the facts
};

AttemptStep NextStep(const AttemptFacts& facts, const PodAttempt& attempt, const StepRules& rules);

// Writes down in the attempt what the step has found, and that its work is under way.
void Apply(const AttemptStep& step, const AttemptFacts& facts, PodAttempt& attempt);

}  // namespace shirabe::trial
