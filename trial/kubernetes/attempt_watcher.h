// Watches attempts of the executor `kubernetes`: gathers the facts for a step (attempt_step.h) and
// does what the step asks for, in the background where it takes long. The object's name, uid and id
// make each of these harmless to do twice, or beside another replica. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "trial/kubernetes/attempt_step.h"
#include "trial/kubernetes/attempt_table.h"
#include "trial/kubernetes/cluster_context.h"
#include "trial/kubernetes/event_lookups.h"
#include "trial/pod/file_mirror.h"

namespace shirabe::trial {

class AttemptWatcher {
 public:
  // All of them outlive it.
  AttemptWatcher(const ClusterContext* context, AttemptTable* attempts, FileMirror* mirror)
      : context_(*context), attempts_(*attempts), mirror_(*mirror), events_(context, Callbacks()) {}

  // Something may have changed for the attempt. `gone` is a pod of it that has just vanished, as it
  // was last seen.
  void Examine(const AttemptKey& key, const Json* gone = nullptr);
  // Asks its program to end, and ends its pods after `grace`: see Executor::Stop.
  void Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace);

  // Examines what is due, and looks up what attempts wait for.
  void OnTimer(absl::Duration now);
  std::optional<absl::Duration> NextDue() const;

 private:
  // What work in the background needs to know of an attempt.
  struct Target {
    AttemptKey key;
    kube::Ref ref;
    std::string uid;
    AttemptRecipe recipe;
  };

  EventLookups::Callbacks Callbacks();
  AttemptFacts GatherFacts(const PodAttempt& attempt, absl::Duration sync_interval) const;
  // Whether a pod that has vanished was the attempt's primary one.
  bool IsOf(const Json& gone, const PodAttempt& attempt) const;
  void TakeTrainerStatus(const Json& object, PodAttempt& attempt) const;
  void Perform(const AttemptStep& step, const AttemptFacts& facts, const Target& target);
  // These run in the background.
  void ConfirmGone(const Target& target);
  void OnConfirmed(const StatusOr<Json>& object, PodAttempt& attempt);
  void EndPods(const Target& target, const std::vector<Json>& pods,
               const AttemptStep::PodsEnd& end);
  void ReadRemainder(const Target& target, const Json& pod);
  Status ApplyFinalSync(const AttemptKey& key, const Json& pod);
  void FollowLog(const Target& target, const Json& pod);
  void AskSidecar(const AttemptKey& key, const Json& pod);

  const ClusterContext& context_;
  AttemptTable& attempts_;
  FileMirror& mirror_;
  EventLookups events_;
};

}  // namespace shirabe::trial
