// The steps of a pass of the reconciler (reconcile_pass.h), as functions: each reads a snapshot,
// the state as the step before has left it, and gives what it wants as a Delta. A delta is applied
// before the next step is called. They read files, the store and the executor; they change none.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiment/plan.h"
#include "experiment/reconciler_options.h"
#include "experiment/state/algorithm_workers.h"
#include "experiment/state/budget.h"
#include "experiment/state/experiment_state.h"
#include "experiment/state/notification.h"
#include "experiment/state/pass_delta.h"
#include "metrics/collector.h"
#include "trial/executor.h"

namespace shirabe::experiment {

// What every step reads.
struct PassInput {
  const ExperimentState& state;
  const ReconcilerOptions& options;
  const ReconcileMode& mode;
  absl::Time now;
  absl::Duration monotonic;
};

// The delta of one active trial under way.
struct TrialEdit {
  const PassInput& in;
  Delta& delta;
  TrialDelta& trial;
};

// ---- what others want: pass_intents.cc, pass_reports.cc ----------------------------------------

// Whether intents are to be read in this pass.
bool WantsIntents(const PassInput& in);
// The next time that they are.
Delta BeginIntents(const PassInput& in);
// One intent; to be removed with the next commit unless it must outlive a crash.
Delta ProcessIntent(const PassInput& in, const v1::Intent& intent);
// What a change of ranges has left outside.
Delta CountOutside(const PassInput& in);
// An ASK intent: its caller waits in `asks`, unless it has an open trial already.
void EnqueueAsk(const PassInput& in, const v1::Intent& intent, Delta& delta);
// The same for a caller who asks this process, of which nothing is stored.
Delta EnqueueCaller(const PassInput& in, const std::string& caller);
// The caller's trial, if it runs.
std::optional<GivenTrial> TrialOfCaller(const ExperimentState& state, const std::string& caller);
// A new trial is for the caller that asked first, if there is one.
void AssignToCaller(v1::Trial& trial, Delta& delta);
// There will be no trial for those who still ask.
void CancelAsks(Delta& delta);
// The report's points; its end, if it has one, becomes reported_end of the attempt.
// kInvalidArgument, with the field; kPermissionDenied if its attempt is not the current one;
// kAlreadyExists if another end of the trial was reported before. Only if OK is `delta` of use.
StatusOr<ReportReply> ProcessReport(const PassInput& in, const Report& report, Delta& delta);

// ---- what happened to the open attempts: pass_observe.cc, pass_end.cc, pass_checkpoints.cc -----

// There may be room now for what had to wait for it: pauses are over.
Delta EndPauses(const PassInput& in);
// An active trial with an open attempt, and what the executor knows of that; null = nothing.
StatusOr<Delta> ObserveAttempt(const PassInput& in, const ActiveTrial& active,
                               const trial::AttemptStatus* observed);
// An attempt that is no longer, or not yet again, the open one of its trial.
Delta ObserveStray(const PassInput& in, const trial::AttemptStatus& observed);
// Where the metrics of an attempt are.
metrics::Source SourceOf(const PassInput& in, const v1::Trial& trial, const v1::Attempt& attempt);
// Its program has ended and all it wrote was read: what its end means for the trial.
void FinishAttempt(const TrialEdit& edit, const trial::AttemptStatus& observed);
// Of a trial that ends in this phase because it was stopped, for this reason. Its observations
// count as those of one that succeeded; without all that a result has it is of no use to the
// algorithm.
void RecordEarlyStop(const TrialEdit& edit, v1::TrialPhase phase, const std::string& reason);
// Where the attempt began (AttemptStatus::begin_known).
Status RecordResume(const TrialEdit& edit, const trial::AttemptStatus& observed);
bool HasNewCheckpoint(const TrialDelta& trial, const trial::AttemptStatus& observed);
Status RecordCheckpoints(const TrialEdit& edit, const trial::AttemptStatus& observed);
// What the policy does not keep is recorded as gone, then deleted.
void PruneOld(const TrialEdit& edit);
// From which a new attempt may start: its own; after them, should none be intact, its parent's.
StatusOr<std::vector<v1::Checkpoint>> ResumeCandidates(const PassInput& in,
                                                       const ActiveTrial& active);

// ---- the plan: pass_plan.cc --------------------------------------------------------------------

// With what the quota of the namespace leaves of it, which is reserved.
Plan DecidePlan(const PassInput& in);
// Kills, stops, opens; writes why the rest waits.
Delta ApplyPlan(const PassInput& in, const Plan& plan);
// The experiment has ended.
Delta Conclude(const PassInput& in, const Plan::Ending& ending);
// What a new trial would get.
trial::PlacementQuote QuotePlacement(const PassInput& in);
// Asks the open attempt to end, unless that was asked before. `trial_reason`: see StopRequest.
void RequestStop(const TrialEdit& edit, v1::Cause cause, const std::string& reason = "",
                 const std::string& trial_reason = "");
// The next attempt of this trial, whose record follows: recorded, not started; of a trial that a
// caller runs the first one is running by being recorded: its caller begins on hearing of it.
v1::Attempt OpenAttempt(const PassInput& in, v1::Trial& trial);
void SetCondition(const std::string& type, const std::string& reason, const std::string& message,
                  Delta& delta);
// Why the experiment waits; written only when it changes.
void SetWaiting(const std::string& why, Delta& delta);
// Why one trial waits; written only when it changes, and ever less often.
void SetWaitReason(const TrialEdit& edit, const std::string& why);

// ---- early stops, limits, the best trial: pass_stopping.cc -------------------------------------

// The questions about trials that have reported something new; empty if there are none.
std::vector<StopTicket::Question> StopQuestions(const PassInput& in);
// These are asked.
Delta MarkAsked(const PassInput& in);
Delta ApplyStopDecisions(const PassInput& in, const StopTicket& answered);
// Ends this trial, whatever it waits for: it keeps its best value, if it has one.
void StopTrial(const TrialEdit& edit, const std::string& reason, const char* trial_reason);
// Trials that have run for spec.shirabe.limits.trialSeconds.
Delta EnforceTrialLimit(const PassInput& in);
// Trials that can no longer keep a constraint with stopEarly.
Delta StopBroken(const PassInput& in);
// Whether the algorithm's model is to be asked how far the best value may be from the optimum.
bool WantsBound(const PassInput& in);
Delta ApplyRegretBound(const PassInput& in, const RegretTicket& answered);
Delta ApplyRecommendation(const PassInput& in, const RecommendTicket& answered);

// ---- more trials: pass_suggest.cc --------------------------------------------------------------

// Whether the algorithm is to be asked now; if not, the delta says what is done instead.
struct AskDecision {
  bool ask = false;
  Delta delta;
};
// `leaving`: in this pass an attempt has ended, which leaves its place after the commit.
AskDecision DecideAsk(const PassInput& in, const Plan& plan, bool leaving);
Delta ApplyProposal(const PassInput& in, const Plan& plan, const ProposalTicket& answered);
// A new trial, with its first attempt if it is to start at once.
void AddTrial(const PassInput& in, const suggestion::Suggestion& suggestion, bool open,
              Delta& delta);
// The condition Running, and the time of the first trial.
void RecordStarted(Delta& delta);
v1::Trial NewTrial(const PassInput& in, const suggestion::Suggestion& suggestion, int64_t number);

// ---- what is done once it is written: pass_start_stop.cc ---------------------------------------

// What to do about the open attempt of a trial, now that its record is committed.
struct AttemptAction {
  // kBegun: its caller may have begun.
  enum class Kind { kNone, kStop, kStart, kStartLater, kBegun } kind = Kind::kNone;
  bool at_once = false;  // kStop: without grace
};
struct StartResult {
  Status status;
  bool resumes = false;  // it was to start from a checkpoint
};
AttemptAction NextAction(const PassInput& in, const ActiveTrial& active);
Delta RecordStop(const PassInput& in, const ActiveTrial& active, bool at_once);
Delta RecordStart(const PassInput& in, const ActiveTrial& active, const StartResult& result);
Delta RecordBegun(const PassInput& in, const ActiveTrial& active);
Delta EndStartPauses(const PassInput& in);
// What is on its way is looked at again, however little is heard of it.
Delta RequeuePending(const PassInput& in);

// ---- notifications: pass_notify.cc -------------------------------------------------------------

// The outbox is the list of events. What is to be told is an event with a number and a body, which
// is written in the Commit that holds what it tells; status.shirabe.notifications says how far each
// endpoint has come, and is written once an endpoint has answered. Only the owner of the experiment
// delivers, one after another to each endpoint, so that they come in order. A process that dies
// between answer and Commit leaves one that is delivered again, under the same id; none is lost.

// How long an endpoint is asked to take one notification, and how often at most.
inline constexpr absl::Duration kMaxNotificationAge = absl::Hours(24);
inline constexpr int kMaxNotificationAttempts = 30;

// What has happened and no event has said yet.
Delta RecordNotifications(const PassInput& in, const BudgetState& money);

// An endpoint has answered, or has not.
Delta ApplyDelivery(const PassInput& in, const NotificationTicket& answered);

// The next attempt for this endpoint, if one is due: it is read from the store, after the event
// `after`, which moves on. Null where there is nothing to do now.
using NotificationTicketPtr = std::shared_ptr<NotificationTicket>;  // shared with its worker
StatusOr<NotificationTicketPtr> NextDelivery(const PassInput& in,
                                             const v1::NotificationStatus& endpoint,
                                             int64_t& after);
// Until it is; infinite where nothing waits.
absl::Duration UntilDelivery(const PassInput& in, const v1::NotificationStatus& endpoint);

// Its events are gone, in a way that none of ours takes: nothing is waited for any longer.
Delta DropDeliveries(const PassInput& in, const std::string& endpoint);

}  // namespace shirabe::experiment
