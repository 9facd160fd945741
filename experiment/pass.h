// One pass of the reconciler over one experiment, as a page of named steps. Made for one call and
// thrown away; everything that must be remembered is in State, and through it in the store.
#pragma once

#include <string>
#include <vector>

#include "experiment/ingest.h"
#include "experiment/ledger.h"
#include "experiment/plan.h"
#include "experiment/policy.h"
#include "experiment/reconciler_options.h"
#include "experiment/state.h"

namespace shirabe::experiment {

class Pass {
 public:
  Pass(const ReconcilerOptions& options, State& state, PassMode mode);

  // TakeIntents → TakeReports → ObserveAttempts → Decide → StopEarly → Propose → Commit → Act.
  StatusOr<ReconcileResult> Run();

 private:
  // What other processes want, and what programs report of their own accord.
  Status TakeIntents();
  void Apply(const v1::Intent& intent);
  void Scale(const v1::Intent& intent);
  void Retry(const v1::Intent& intent);
  void TakeReports();

  // What happened to the open attempts, and their metrics.
  Status ObserveAttempts();
  Status ObserveOpen(Live& live, const trial::Sighting* sighting);
  void NoteOnItsWay(Live& live, const trial::Sighting& sighting);
  Status NoteRunning(Live& live, const trial::Sighting& sighting);
  void NotePlace(Live& live, const v1::Placement& placement);
  void StopStray(const trial::Sighting& sighting);
  StatusOr<bool> CollectLive(Live& live);
  StatusOr<bool> CollectRest(Live& live);
  bool GiveUpReading(Live& live, const Status& unreadable);
  void Finish(Live& live, const trial::Sighting& sighting);
  v1::Cause CauseOf(const Live& live, const trial::Sighting& sighting) const;
  void FinishTrial(Live& live, const NextStep& next);
  void Retry(Live& live, const NextStep& next);
  void Complete(Live& live, std::string reason);

  // What they saved, what they went on from, and what is no longer needed.
  Status NoteResume(Live& live, const trial::Sighting& sighting);
  Status NoteCheckpoints(Live& live, const trial::Sighting& sighting);
  static bool HasNewCheckpoint(const Live& live, const trial::Sighting& sighting);
  void NoteDamage(Live& live, const v1::Checkpoint& damaged);
  void TellOfCheckpoint(Live& live, const v1::Checkpoint& checkpoint);
  void PruneOld(Live& live);
  void WarnOverdue(Live& live);

  // What to do: the plan, carried into the state.
  void Decide();
  trial::Offer Quote() const;
  Money CountMoney() const;
  void TakeRoom();
  void SayWhyWaiting();
  void SayWaiting(Live& live, const std::string& why);
  bool EndsAtOnce() const;
  void TakeGrace(Live& live);
  void RequestStop(Live& live, v1::Cause cause, const std::string& reason = "");
  bool Recommended();
  void TakeRecommendation(const RecommendTicket& ticket);
  void Conclude(const Plan::Ending& ending);
  void SetCondition(const std::string& type, const std::string& reason, const std::string& message);
  void Open(Live& live);

  // Poor trials that end early.
  void StopEarly();
  bool AskStopper();
  void TakeVerdicts(const StopTicket& ticket);
  void NoteEarlyStop(Live& live);

  // More trials from the algorithm.
  void Propose();
  bool AddStartPoints();
  void AskAlgorithm();
  void AddTrial(const suggestion::Suggestion& suggestion);
  void TakeProposal(suggestion::Proposal proposal, int asked);
  void NoteFailure(const Status& status);
  void SetWaiting(const std::string& why);
  void NoteStarted();

  // The commit, and what comes after it.
  void LookAgain();
  Status CommitOrCheckLease();
  Status Act();
  Status SendStop(Live& live);
  void StartOpen(Live& live);
  Status Start(const trial::AttemptRequest& request);
  StatusOr<std::vector<v1::Checkpoint>> ResumeFrom(const Live& live);

  // A crash may come between any two effects: tests stop the world here.
  void Step();
  void Event(const Live* live, bool warning, const std::string& reason, const std::string& message);
  metrics::Source SourceOf(const Live& live) const;
  void Requeue(absl::Duration after);

  const ReconcilerOptions& options_;
  State& state_;
  const PassMode mode_;
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
