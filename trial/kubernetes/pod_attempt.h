// What the executor `kubernetes` remembers of an attempt, and how the object and its pods as the
// API server shows them, the nodes below them, and what the sidecar has told are read together.
// Data and pure functions; the owner of the data (attempt_table.h) locks it.
//
// The cluster's word and the sidecar's complete each other. The API server knows where the program
// ran and what the platform did to it; the sidecar knows the program's own exit, its checkpoints,
// and that every byte it wrote has arrived. An attempt that has ended is shown as ended only once
// nothing more can come of it, because what is collected afterwards is never looked at.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/attempt_status.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/pod_verdict.h"
#include "trial/kubernetes/wait_reasons.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {

// What looking at an attempt has come to so far: each step (attempt_step.h) gives the next one.
// Moments are monotonic.
struct AttemptProgress {
  std::string node;                                // of the primary pod
  bool node_seen = false;                          // the node itself was, too
  std::optional<absl::Duration> node_quiet_since;  // not ready, or not to be seen
  std::string warned;                              // of what: the node is about to go
  std::optional<absl::Duration> waiting_since;     // for `waiting_reason`
  std::string waiting_reason;
  std::optional<absl::Duration> unheard_since;      // it runs, and its sidecar was never heard of
  std::optional<absl::Duration> events_at;          // from when on they are looked up
  bool needs_events = false;                        // it waits, and only an event may say why
  std::optional<absl::Duration> complete_since;     // its sidecar has sent everything
  std::optional<absl::Duration> unexplained_since;  // see PodVerdict
  std::optional<PodVerdict> over;                   // its program has ended; the rest is awaited
  absl::Duration over_at;
};

struct PodAttempt {
  AttemptKey key;
  std::string id;  // AttemptId (supervisor_records.h)

  // The object, once it is known.
  kube::Ref ref;
  std::string uid;  // "" = not known
  std::optional<absl::Time> created;
  AttemptRecipe recipe;
  std::optional<Json> gone;  // its primary pod as it was last seen, once that has vanished
  bool object_gone = false;  // the API server says that there is no such object any more
  bool never_began = false;  // nor ever was, as far as is known

  // What its sidecar told.
  v1::PodState state;
  bool unsaved = false;                 // the disk did not take it
  std::optional<absl::Duration> heard;  // monotonic; its last request
  std::string own_pod;                  // uid of the pod that it was found to stand in
  std::string unheard_why;              // what there is to say of it where there was none

  // What a TrainJob's status told: when the last of it was reported, and what takes the next.
  struct Trainer {
    std::string time;
    std::function<Status(const std::string& body)> handle;
  };
  Trainer trainer;

  // What is wanted of the program. `id` is given when it is handed out.
  struct ProgramRequest {
    std::string reason;
    absl::Time deadline = {};
    int64_t id = 0;
  };
  std::optional<ProgramRequest> pending_request;  // not acknowledged yet
  int64_t last_id = 0;
  struct Stop {
    absl::Duration kill_at = {};    // monotonic
    absl::Duration delete_at = {};  // when its pods are deleted, acknowledged or not
    bool deleted = false;           // a deletion with this kill_at is on its way, or done
    bool suspended = false;         // its object was told to end them first
    std::string refused;            // by the API server, and why: tried again all the while
  };
  std::optional<Stop> stop;

  // What has been seen so far.
  AttemptStatus observed;
  AttemptProgress progress;
  std::vector<Json> events;     // the last that were found
  bool remainder_read = false;  // the log was read through the API after the end

  // Work that other threads do for it now.
  bool reading_log = false, confirming = false, reading_sidecar = false;
  absl::Duration log_at;              // monotonic; when its log is read next, where we do that
  std::optional<absl::Duration> due;  // monotonic; when it is to be looked at again

  bool ended() const { return observed.state != AttemptStatus::State::kRunning; }
};

// All containers of the pod have ended.
bool IsTerminal(const Json& pod);

// To be looked at again; the earliest moment that was asked for stands.
void CheckAt(absl::Duration at, PodAttempt& attempt);

// How its pods were made. One without our containers resumes from nothing, which is known at once.
void SetRecipe(AttemptRecipe recipe, PodAttempt& attempt);
// One of the copies of its files (trial/pod/file_mirror.h) is another one from now on.
void MarkFilesChanged(PodAttempt& attempt);
// The object is the attempt's own: from now on it is known.
void Bind(const Json& object, PodAttempt& attempt);

// Asks something of its program, through its sidecar, in place of a request before it.
void RequestOfProgram(const std::string& reason, absl::Time deadline, PodAttempt& attempt);

// What stands in the cluster at one moment.
struct AttemptSnapshot {
  std::optional<Json> object;
  std::optional<Json> pod;  // the primary one, there or as last seen
  bool pod_vanished = false;
  std::optional<Json> node;
  PodFacts::Node node_state = PodFacts::Node::kUnknown;
  double price_per_hour = 0;            // of all pods of the attempt but the primary one
  double on_demand_price_per_hour = 0;  // the same
  std::optional<PodVerdict> taken;      // the platform has taken one of these away
};

// Looks at a pod that is not the primary one.
void ObserveSecondaryPod(const Json& pod, const PodFacts& facts, AttemptSnapshot& snapshot);

// The pod whose program counts: of several the oldest that has not ended, if any.
std::optional<Json> PrimaryPod(const std::vector<Json>& pods, const AttemptRecipe& recipe);

// Reads the pod, and the object's own conditions where there are any or no pod speaks. `placement`
// is what is known by now of where it runs.
PodVerdict ReadSnapshot(const AttemptSnapshot& snapshot, const PodAttempt& attempt,
                        const v1::Placement& placement);

// Whether the program's own exit is its attempt's, and no condition of the object.
bool ExitDecides(const PodAttempt& attempt);

// Whether its final sync is in a log that can be read.
bool SidecarHasEnded(const AttemptSnapshot& snapshot);

// The end of an attempt, from the cluster's verdict and what its sidecar told, into `observed`.
void RecordEnd(const PodVerdict& verdict, absl::Time now, const PodAttempt& attempt,
               AttemptStatus& observed);

// Takes what a sidecar tells of the attempt's checkpoints into `observed`. It is believed only for
// its own attempt: the keys are ours. True if it told anything new.
bool ApplyPodState(const v1::PodState& state, PodAttempt& attempt);

}  // namespace shirabe::trial
