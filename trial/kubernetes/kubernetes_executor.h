// Attempts as Jobs of a cluster, or as whatever kind of object the trial's template is. The API
// server keeps what is true of them; a PodAttempt is only what we remember. All that happens, a
// change in the cluster, a report of a sidecar, a moment that has come, leads to one function,
// Examine, which looks at everything there is of one attempt and brings its AttemptStatus up to
// date. So a missed or doubled event, a stale copy and a restart cost nothing but time.
//
// What takes long (calls of the API server, logs) is done by a few threads in the background, and
// the object's name, uid and id make each of these harmless to do twice, or beside another replica.
//
// Locking: mutex_ guards everything that changes, and the view's own lock may be taken under it,
// not the other way round. No call of the API server and no file is waited for under it. on_change
// is called without it.
//
// trial/executors/kubernetes.cc holds how attempts begin. Beside this header, kubernetes_watch.cc
// holds how they are watched, kubernetes_events.cc why they wait, kubernetes_end.cc how they end,
// kubernetes_cleanup.cc how what they leave goes, kubernetes_sync.cc what is exchanged with their
// sidecars, kubernetes_prune.cc how checkpoints are deleted.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "trial/executor.h"
#include "trial/file_layout.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/cluster_view.h"
#include "trial/kubernetes/pod_attempt.h"
#include "trial/kubernetes/pod_scheduling.h"
#include "trial/kubernetes/pod_token_reviewer.h"
#include "trial/pod/file_mirror.h"
#include "trial/pod/pod_build.h"
#include "trial/task_pool.h"
#include "trial/wakeup_timer.h"

namespace shirabe::trial {

// How patient the executor `kubernetes` is. Tests are less so.
struct PodTimeouts {
  absl::Duration start = absl::Milliseconds(20);  // of a caller, for an object to be made
  absl::Duration silence = absl::Seconds(40);     // of a node that is not ready, before it is dead
  absl::Duration unseen = absl::Seconds(15);      // of a node that we were not told of
  absl::Duration final_sync = absl::Seconds(20);  // for the rest, after a program's end
  absl::Duration stop_ack_timeout =
      absl::Milliseconds(1500);                  // for a sidecar to take a stop, before SIGTERM
  absl::Duration ask_events = absl::Seconds(5);  // of waiting, before events are looked up
  absl::Duration events_again = absl::Seconds(30);
  absl::Duration retry = absl::Seconds(2);    // what the API server did not do
  absl::Duration settle = absl::Minutes(10);  // for all experiments to be owned again, at the start
  absl::Duration orphan = absl::Seconds(20);  // of a pod of no known attempt, before it goes
  absl::Duration stall = absl::Minutes(2);    // of a watch, before it is given up
  absl::Duration sync = absl::Seconds(2);     // between two requests of a sidecar
  absl::Duration prune = absl::Seconds(30);   // for a sidecar to delete what is not kept
  absl::Duration logs = absl::Seconds(3);     // between two looks at a log, where there is none
};

// Whose sidecars can reach a checkpoint.
enum class Scope { kAttempt, kTrial };

class KubernetesExecutor : public Executor {
 public:
  explicit KubernetesExecutor(const ExecutorOptions& options, const PodTimeouts& times = {});
  ~KubernetesExecutor() override;
  static StatusOr<std::unique_ptr<Executor>> Create(const ExecutorOptions& options);

  Status Start(const AttemptRequest& request) override;
  Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) override;
  void Adopt(const std::vector<v1::Attempt>& open) override;
  std::vector<AttemptStatus> Observe(const ExperimentKey& experiment) override;
  void Forget(const AttemptKey& key) override;
  Status RemoveFiles(const ExperimentKey& experiment, int64_t trial) override;
  void CleanVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) override;
  AttemptPaths Paths(const AttemptKey& key) const override;
  PlacementQuote QuotePlacement(const ExperimentKey& experiment,
                                const google::protobuf::Struct& trial_spec,
                                const PlacementRequest& placement_request) override;
  void Prune(const v1::Checkpoint& checkpoint) override;
  void UseVolume(const ExperimentKey& experiment, const v1::ExperimentSpec& spec) override;
  StatusOr<v1::SyncReply> Sync(const v1::SyncRequest& request,
                               const std::string& bearer = {}) override;

  // Whether all there is in the cluster is known by now.
  bool Synced() const { return view_.Synced(); }

 private:
  using Attempts = std::map<AttemptKey, PodAttempt>;
  // An attempt that is not watched any more; what is left of it in the cluster goes.
  struct Teardown {
    kube::Ref ref;
    std::string uid;
    bool deleted = false;  // the object is, or it is to stay
    bool busy = false;
    absl::Duration since;
    std::optional<absl::Duration> due;
  };
  // A Job that is to delete what an experiment has left on its volume, and was not started yet.
  struct VolumeCleanup {
    Json job;
    absl::Duration due;  // monotonic
    int failures = 0;
  };
  // What QuotePlacement has said, for a while: it looks at every node.
  struct CachedQuote {
    PlacementQuote quote;
    absl::Duration until;  // monotonic
  };
  // Attempts of a namespace that wait, and only an event may say why.
  struct EventLookup {
    std::set<AttemptKey> fresh;           // never looked up yet
    std::set<AttemptKey> known;           // looked up before
    bool asking = false;                  // just now
    std::optional<absl::Duration> asked;  // monotonic; the last time, and how long that took
    absl::Duration took;
  };
  // An attempt whose object is just being made.
  struct PendingStart {
    bool left = false;             // its caller has stopped waiting
    std::optional<Status> answer;  // once it is made, or not
    struct RequestedStop {
      v1::Cause why = v1::CAUSE_NONE;
      absl::Duration grace;
    };
    std::optional<RequestedStop> stop;  // what was asked for meanwhile
  };
  // Checkpoints to be deleted, by a sidecar that can reach them, else by a Job.
  struct PruneQueue {
    Scope scope = Scope::kAttempt;
    std::vector<v1::Checkpoint> queue;
    std::optional<Json> job;             // without the list; none = no volume is shared
    std::vector<v1::Checkpoint> handed;  // of the queue, to the Job that runs
    std::optional<absl::Duration> due;   // monotonic; when the Job is looked after
    int failures = 0;                    // in a row
  };

  // How they begin.
  Status AwaitCleaned(const AttemptRequest& request);
  StatusOr<bool> Reserve(const PodAttempt& attempt);
  StatusOr<absl::Duration> PatienceFor(const AttemptKey& key);
  StatusOr<AttemptObject> Prepare(const AttemptRequest& request, PodAttempt& attempt);
  StatusOr<Json> Make(const AttemptObject& built, const PodAttempt& attempt);
  Status AwaitCreated(const AttemptKey& key, absl::Duration patience,
                      std::unique_lock<std::mutex>& lock);
  void OnCreated(const StatusOr<Json>& object, PodAttempt attempt);
  Status RecordCreated(const StatusOr<Json>& object, PodAttempt attempt);
  void RecordPruneScope(const AttemptRequest& request);
  // All below with mutex_ held, but for what says otherwise.
  void Bind(const Json& object, PodAttempt& attempt);
  void Load(PodAttempt& attempt);
  void Resolve(PodAttempt& attempt);
  void ConfirmGone(PodAttempt& attempt);
  void OnConfirmed(const StatusOr<Json>& object, PodAttempt& attempt);

  // What is seen of them.
  void Examine(const AttemptKey& key, const Json* gone);  // without mutex_
  void OnNode(const std::string& name);                   // without mutex_
  void Update(PodAttempt& attempt);
  AttemptSnapshot TakeSnapshot(PodAttempt& attempt);
  void ObserveNode(const std::string& name, AttemptSnapshot& snapshot, PodAttempt& attempt);
  void Place(const AttemptSnapshot& snapshot, PodAttempt& attempt);
  void Warn(const NodeWarning& warning, PodAttempt& attempt);
  void ApplyReportedEnd(PodAttempt& attempt, PodVerdict& verdict);
  void AwaitReason(PodAttempt& attempt, PodVerdict& verdict);
  void Wait(const AttemptSnapshot& snapshot, PodAttempt& attempt, PodVerdict& verdict);
  void ScheduleCheck(PodAttempt& attempt, absl::Duration at);
  void AddToAgenda(const AttemptKey& key, absl::Duration at);

  // Why they wait.
  void ScheduleEventLookup(PodAttempt& attempt);
  absl::Duration DueOf(const EventLookup& waiting) const;
  std::map<std::string, AttemptKey> NamesOf(EventLookup& waiting) const;
  void FetchDueEvents(absl::Duration now);
  void FetchEvents(const std::string& namespace_name,
                   const std::map<std::string, AttemptKey>& names);  // without mutex_

  // How they end.
  void AwaitRemainder(const AttemptSnapshot& snapshot, PodAttempt& attempt);
  void FollowLog(const AttemptSnapshot& snapshot, PodAttempt& attempt);
  void EndPods(PodAttempt& attempt);
  void Drop(Attempts::iterator attempt);
  void Clear(const AttemptKey& key, Teardown& teardown);
  void ClearAgain(const AttemptKey& key, Teardown& teardown, absl::Duration at);
  void RecordKind(const ExperimentKey& experiment,
                  const google::protobuf::Struct& trial_spec);  // without mutex_
  void RecordRemoval(const ExperimentKey& experiment);          // without mutex_
  void RemoveLeftovers(absl::Duration now);
  void StartCleaners(absl::Duration now);
  void RecordCleanerResult(const ExperimentKey& experiment, const Status& started);
  void FindOrphans(absl::Duration now);
  void ResumeRemovals(absl::Duration now);
  void NotifyController(const ExperimentKey& key);  // the controller
  // Without mutex_: these take their time.
  void ReadRemainder(const AttemptKey& key, const Json& pod, const AttemptRecipe& recipe);
  Status ApplyFinalSync(const AttemptKey& key, const Json& pod);
  Status FetchLog(const AttemptKey& key, const Json& pod, const AttemptRecipe& recipe);

  // Sidecars.
  StatusOr<std::string> Identify(const AttemptKey& key, const std::string& token,
                                 const std::string& bearer);  // without mutex_
  bool IsItsPod(const PodAttempt& attempt, const std::string& uid) const;
  Status Admit(const AttemptKey& key, const std::string& id) const;
  bool MayUse(const v1::ExperimentSpec& spec) const;  // its volume
  void FillPrunes(const PodAttempt& attempt, v1::SyncReply& reply);
  void StartPruners(absl::Duration now);
  void RecordPrunerResult(const ExperimentKey& experiment, const StatusOr<bool>& pruned);
  absl::Duration Next() const;  // between two requests of one
  void Ask(const std::string& reason, absl::Time deadline, PodAttempt& attempt);
  void AcknowledgeRequest(PodAttempt& attempt);
  void FillReply(PodAttempt& attempt, v1::SyncReply& reply);

  std::optional<absl::Duration> OnTimer();  // without mutex_
  void Wake();
  void Do(std::function<void()> work);

  const ExecutorOptions options_;
  const PodTimeouts timeouts_;
  const Layout layout_;
  kube::Client& client_;
  Mirror mirror_;
  PodTokenReviewer token_reviewer_;
  const absl::Duration began_;

  std::mutex mutex_;
  std::condition_variable created_;  // something in pending_starts_ has an answer
  // These are guarded by mutex_.
  Attempts attempts_;
  std::map<AttemptKey, PendingStart> pending_starts_;
  std::map<AttemptKey, Status> refused_;  // could not be made; OK = and the caller knows
  std::set<AttemptKey> unconfirmed_;      // were to be started; not known whether they were
  std::map<AttemptKey, Teardown> teardowns_;
  std::map<AttemptKey, absl::Duration>
      orphans_;  // pods of no attempt that is known, and since when
  absl::Duration next_orphan_scan_;
  std::set<ExperimentKey> asked_;                // experiments of orphans that were told once
  std::set<ExperimentKey> unfinished_;           // whose removal an earlier process has begun
  std::map<TrialKey, absl::Duration> removals_;  // what is to be deleted, and when; trial 0 = all
  std::map<ExperimentKey, ObjectKind> kinds_;    // of those to be deleted, where it is another one
  std::map<ExperimentKey, VolumeCleanup> volume_cleanups_;
  std::set<ExperimentKey> clean_;  // whose shared folder is known to hold nothing of another's
  std::map<std::string, CachedQuote> quotes_;
  std::set<std::pair<absl::Duration, AttemptKey>> agenda_;
  std::set<ExperimentKey> owned_;  // that were looked at: whatever runs of them was adopted before
  std::map<ExperimentKey, PruneQueue> prune_queues_;
  std::map<std::string, EventLookup> event_lookups_;  // by namespace
  absl::Duration away_until_;  // the API server did not answer; not asked before
  std::string away_;           // what it did instead

  // Their threads use all of the above; see the destructor.
  ClusterView view_;
  std::unique_ptr<TaskPool> task_pool_;
  std::unique_ptr<TaskPool> starters_;
  std::unique_ptr<WakeupTimer> timer_;
};

}  // namespace shirabe::trial
