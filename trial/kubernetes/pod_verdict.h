// What became of a pod, and why: the truth table of lost pods. An exit code alone cannot tell a
// program's own failure from a machine that was taken away, and the platform's words are incomplete
// (a node can vanish without any) and sometimes stale; so all of it is read together, here and
// nowhere else; what is left to the exit code alone, experiment/state/retry_policy.h says
// (Classify). Pure: the same pod and facts give the same verdict.
//   DisruptionTarget counts only once the pod is really ending: deleted, or failed by the kubelet
//   or the garbage collector; and not against a program that had ended by itself before. Its
//   reasons: PreemptionByScheduler, EvictionByEvictionAPI; DeletionByTaintManager, DeletionByPodGC
//   and TerminationByKubelet are the node's, or the spot market's on a spot node. A container that
//   never ran costs no attempt. Sidecars' exit codes are ignored.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/text/json_fields.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/attempt_status.h"

namespace shirabe::trial {

// What the pod itself does not say.
struct PodFacts {
  std::string primary;  // the container that trains
  bool spot = false;    // its node is, or was, of spot capacity
  // kDead: its object is gone, or it has been silent for longer than we wait.
  enum class Node { kUnknown, kAlive, kDead } node = Node::kUnknown;
  // From the supervisor's own record: whether it was asked to end before the program did. One that
  // was not ended by itself, whatever happened to the pod then.
  std::optional<bool> stop_requested;
  bool vanished = false;   // the API server has it no more; the pod is as it was last seen
  bool suspended = false;  // its Job is, as Kueue does to take its quota away
};

struct PodVerdict {
  enum class Phase {
    kWaiting,  // the program has not started
    kRunning,
    kEnded,  // how it ended was seen, or it will never start
    kLost,   // it is gone, or unreachable for good, and how the program ended was not seen
  };
  Phase phase = Phase::kWaiting;
  std::optional<int> exit_code;  // of the program, if it ran and its end was seen
  int signal = 0;
  bool out_of_memory = false;
  // For AttemptStatus::platform: why it ended where that is not for the exit code to say;
  // CAUSE_NONE where it is. PREEMPTED_*, SUSPENDED, INFRASTRUCTURE and NEVER_RAN are the platform's
  // doing; OOM and APP_ERROR the program's own that its exit code hides (it ate its node's disk,
  // say).
  v1::Cause cause = v1::CAUSE_NONE;
  // Whose activeDeadlineSeconds were over; the cause is APP_ERROR then.
  AttemptStatus::Overdue overdue = AttemptStatus::Overdue::kNo;
  std::string message;  // for people, with the platform's own words; "" if there is nothing to say
  std::string node;     // "" = not scheduled
  std::optional<absl::Time> start;  // of the program
  std::optional<absl::Time> end;
  // It is being deleted or was asked to end, and still runs.
  bool ending = false;
  // Its object calls itself failed while it runs on, and no pod has said why; or its pod was
  // deleted, and its object may say why in a moment.
  bool unexplained = false;
};

PodVerdict ReadPod(const Json& pod, const PodFacts& facts);

// Why a Job itself says that it has failed, where its pods do not tell: DeadlineExceeded,
// BackoffLimitExceeded…; CAUSE_NONE with no message while it has not.
struct JobVerdict {
  v1::Cause cause = v1::CAUSE_NONE;
  std::string message;
  bool suspended = false;
  bool overdue = false;  // it has failed because its activeDeadlineSeconds were over
  bool limited = false;  // it has such a limit, and has not failed yet
};
JobVerdict ReadJob(const Json& job);

}  // namespace shirabe::trial
