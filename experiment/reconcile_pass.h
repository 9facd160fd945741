// One pass of the reconciler over one experiment, as a page of named steps. Made for one call and
// thrown away; everything that must be remembered is in State, and through it in the store.
#pragma once

#include <string>
#include <vector>

#include "experiment/cost_ledger.h"
#include "experiment/experiment_state.h"
#include "experiment/observation_ingest.h"
#include "experiment/plan.h"
#include "experiment/reconciler_options.h"
#include "experiment/retry_policy.h"

namespace shirabe::experiment {

class Pass {
 public:
  Pass(const ReconcilerOptions& options, State& state, ReconcileMode mode);

  // ProcessIntents → ProcessReports → ObserveAttempts → Decide → StopEarly → Propose → Commit →
  // Act.
  StatusOr<ReconcileResult> Run();

 private:
  // What other processes want, and what programs report of their own accord.
  Status ProcessIntents();
  void Apply(const v1::Intent& intent);
  void Scale(const v1::Intent& intent);
  void Retry(const v1::Intent& intent);
  void ProcessReports();

  // What happened to the open attempts, and their metrics.
  Status ObserveAttempts();
  Status ObserveOpen(ActiveTrial& live, const trial::AttemptStatus* observed);
  void RecordPending(ActiveTrial& live, const trial::AttemptStatus& observed);
  Status RecordRunning(ActiveTrial& live, const trial::AttemptStatus& observed);
  void RecordPlacement(ActiveTrial& live, const v1::Placement& placement);
  void StopOrphan(const trial::AttemptStatus& observed);
  StatusOr<bool> CollectRunning(ActiveTrial& live);
  StatusOr<bool> CollectRemaining(ActiveTrial& live);
  bool FailUnreadable(ActiveTrial& live, const Status& unreadable);
  void Finish(ActiveTrial& live, const trial::AttemptStatus& observed);
  v1::Cause CauseOf(const ActiveTrial& live, const trial::AttemptStatus& observed) const;
  void FinishTrial(ActiveTrial& live, const NextStep& next);
  void Retry(ActiveTrial& live, const NextStep& next);
  void Complete(ActiveTrial& live, std::string reason);

  // What they saved, what they went on from, and what is no longer needed.
  Status RecordResume(ActiveTrial& live, const trial::AttemptStatus& observed);
  Status RecordCheckpoints(ActiveTrial& live, const trial::AttemptStatus& observed);
  static bool HasNewCheckpoint(const ActiveTrial& live, const trial::AttemptStatus& observed);
  void RecordDamage(ActiveTrial& live, const v1::Checkpoint& damaged);
  void EmitCheckpointEvent(ActiveTrial& live, const v1::Checkpoint& checkpoint);
  void PruneOld(ActiveTrial& live);
  void WarnOverdue(ActiveTrial& live);

  // What to do: the plan, carried into the state.
  void Decide();
  trial::PlacementQuote QuotePlacement() const;
  BudgetState ComputeBudget() const;
  void ReserveQuota();
  void UpdateWaitReasons();
  void SetWaitReason(ActiveTrial& live, const std::string& why);
  bool EndsAtOnce() const;
  void RevokeGrace(ActiveTrial& live);
  void RequestStop(ActiveTrial& live, v1::Cause cause, const std::string& reason = "");
  bool Recommended();
  void ApplyRecommendation(const RecommendTicket& ticket);
  void Conclude(const Plan::Ending& ending);
  void SetCondition(const std::string& type, const std::string& reason, const std::string& message);
  void Open(ActiveTrial& live);

  // Poor trials that end early.
  void StopEarly();
  bool AskStopper();
  void ApplyStopDecisions(const StopTicket& ticket);
  void RecordEarlyStop(ActiveTrial& live);

  // More trials from the algorithm.
  void Propose();
  bool AddStartPoints();
  void AskAlgorithm();
  void AddTrial(const suggestion::Suggestion& suggestion);
  void ApplyProposal(suggestion::Proposal proposal, int asked);
  void RecordAlgorithmFailure(const Status& status);
  void SetWaiting(const std::string& why);
  void RecordStarted();

  // The commit, and what comes after it.
  void RequeuePending();
  Status CommitOrCheckLease();
  Status Act();
  Status SendStop(ActiveTrial& live);
  void StartOpen(ActiveTrial& live);
  Status Start(const trial::AttemptRequest& request);
  StatusOr<std::vector<v1::Checkpoint>> ResumeFrom(const ActiveTrial& live);

  // A crash may come between any two effects: tests stop the world here.
  void Step();
  void Event(const ActiveTrial* live, bool warning, const std::string& reason,
             const std::string& message);
  metrics::Source SourceOf(const ActiveTrial& live) const;
  void Requeue(absl::Duration after);

  const ReconcilerOptions& options_;
  State& state_;
  const ReconcileMode mode_;
  const absl::Time now_;
  const absl::Duration monotonic_;
  Plan plan_;
  std::vector<AttemptKey> forget_;     // closed in this pass
  std::vector<v1::Checkpoint> prune_;  // recorded as gone in this pass
  LogTrims trims_;                     // after the commit
  bool delete_ = false;
  bool removing_ = false;  // what belongs to it, before it is deleted
  ReconcileResult result_;
};

}  // namespace shirabe::experiment
