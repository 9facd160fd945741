// One pass of the reconciler over one experiment: calls the steps (pass_steps.h) in their order,
// applies what they give, commits it, and does what was decided. Made for one call and thrown away;
// everything that must be remembered is in ExperimentState, and through it in the store.
#pragma once

#include "experiment/pass_steps.h"
#include "experiment/state/pass_delta.h"

namespace shirabe::experiment {

class Pass {
 public:
  Pass(const ReconcilerOptions& options, ExperimentState& state, ReconcileMode mode);

  // ProcessIntents → ProcessReports → ObserveAttempts → ProcessAsks → Decide → StopEarly → Propose
  // → Commit → Act
  StatusOr<ReconcileResult> Run();

 private:
  Status ProcessIntents();
  void ProcessReports();
  Status ObserveAttempts();
  // Once ends are known: a report may end one trial of its caller and ask for the next.
  void ProcessAsks();
  void Decide();
  // False until the algorithm has said which trial to use: it is asked once, when all trials have
  // ended and before the experiment does.
  bool Recommend();
  void BoundRegret();
  void StopEarly();
  void Propose();
  void RecordNotifications();

  // What was decided is written before it is done.
  Status Commit();
  Status Act();
  // What is committed and runs, to those who have asked for it in this pass.
  void GiveTrials();
  Status SendNotifications();
  bool IsOver() const;
  Status Delete();
  Status ActOn(const ActiveTrial& active);
  Status ActOnFollowUp();
  StartResult Start(const ActiveTrial& active);
  StartResult Start(const trial::AttemptRequest& request);

  // Makes a delta true, but for what is to be done after the commit.
  void Apply(Delta delta);
  bool IsForSoleCaller() const;
  // Away from this thread. True if it was answered within this time.
  template <typename TicketType>
  bool Ask(const std::shared_ptr<TicketType>& ticket,  // shared with its worker
           absl::Duration patience);
  // A crash may come between any two effects: tests stop the world here.
  void Step();

  const ReconcilerOptions& options_;
  ExperimentState& state_;
  const ReconcileMode mode_;
  const PassInput in_;
  Plan plan_;
  Effects effects_;
  bool deletes_ = false;   // the experiment goes in this pass
  bool removing_ = false;  // what belongs to it goes first
};

}  // namespace shirabe::experiment
