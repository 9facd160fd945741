#include "experiment/reconcile_pass.h"

#include <algorithm>
#include <map>
#include <utility>

#include "db/bulk_leases.h"
#include "db/commit_rules.h"
#include "experiment/attempt_request.h"
#include "experiment/conditions.h"
#include "experiment/observation_ingest.h"
#include "experiment/pass_follow_up.h"
#include "experiment/state/stop_rules.h"

namespace shirabe::experiment {
namespace {

// How many times as long the algorithm is waited for where nothing else can happen meanwhile.
constexpr int kSoleCallerPatience = 10;

// The end of an attempt that was reported is as good as one that was seen.
void ShowReportedEnd(const AttemptMemory& memory, absl::Duration monotonic,
                     trial::AttemptStatus& observed) {
  observed.state = trial::AttemptStatus::State::kExited;
  observed.exit_code = memory.reported_end->completed ? 0 : 1;
  observed.ran = memory.Ran(monotonic);
  observed.message = memory.reported_end->message;
}

bool IsIdle(const ExperimentState& state) {
  return !OpenFollowUp(state) &&
         std::none_of(state.active().begin(), state.active().end(),
                      [](const auto& entry) { return entry.second.open.has_value(); });
}

}  // namespace

Pass::Pass(const ReconcilerOptions& options, ExperimentState& state, ReconcileMode mode)
    : options_(options),
      state_(state),
      mode_(std::move(mode)),
      in_{state_, options_, mode_, options.clock->Now(), options.clock->Monotonic()} {}

StatusOr<ReconcileResult> Pass::Run() {
  Step();
  state_.calls().ReleaseAnswered();
  Apply(CountOutside(in_));
  RETURN_IF_ERROR(ProcessIntents());
  ProcessReports();
  if (mode_.recheck) Apply(EndPauses(in_));
  RETURN_IF_ERROR(ObserveAttempts());
  ProcessAsks();
  Apply(EnforceTrialLimit(in_));
  Apply(StopBroken(in_));
  const bool reload = state_.memory().ranges_changed;
  if (!reload) {
    BoundRegret();
    Decide();
    StopEarly();
    Propose();
  }
  RecordNotifications();
  Step();
  RETURN_IF_ERROR(Commit());
  Step();
  RETURN_IF_ERROR(Act());
  GiveTrials();
  if (reload) {
    RETURN_IF_ERROR(state_.ReloadHistory(*options_.store));
    effects_.Requeue(absl::ZeroDuration());
  }
  ReconcileResult result{.idle = IsIdle(state_), .deleted = deletes_};
  result.ended = deletes_ || (IsOver() && result.idle);
  if (!result.ended) Apply(RequeuePending(in_));
  Apply(RequeueFollowUp(in_));
  result.requeue_after = effects_.requeue_after;
  return result;
}

void Pass::Apply(Delta delta) {
  Effects effects = experiment::Apply(std::move(delta), state_);
  if (!effects.adopt.empty()) options_.executor->Adopt(std::exchange(effects.adopt, {}));
  for (const AttemptKey& key : std::exchange(effects.forget_lost, {})) {
    options_.executor->Forget(key);
  }
  for (const AttemptKey& key : std::exchange(effects.stop_strays, {})) {
    options_.executor->Stop(key, v1::USER, absl::ZeroDuration()).IgnoreError();
  }
  effects_.Append(std::move(effects));
}

void Pass::Step() {
  if (options_.at_step) options_.at_step();
}

// ---- what happened -----------------------------------------------------------------------------

Status Pass::ProcessIntents() {
  if (!WantsIntents(in_)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto intents, options_.store->ListIntents(state_.key()));
  Apply(BeginIntents(in_));
  for (const v1::Intent& intent : intents) {
    Apply(ProcessIntent(in_, intent));
    // What comes after it is meant for the space that it makes.
    if (state_.memory().ranges_changed) return absl::OkStatus();
  }
  return absl::OkStatus();
}

void Pass::ProcessReports() {
  for (const PendingReportPtr& pending_report : mode_.pending_reports) {
    if (pending_report->report.trial.number == 0) continue;  // it only asks
    Delta delta(state_, in_.now);
    pending_report->answer = ProcessReport(in_, pending_report->report, delta);
    if (pending_report->answer.ok()) Apply(std::move(delta));
  }
}

Status Pass::ObserveAttempts() {
  std::map<AttemptKey, trial::AttemptStatus> statuses;
  for (trial::AttemptStatus& observed : options_.executor->Observe(state_.key())) {
    statuses.emplace(observed.key, std::move(observed));
  }
  for (const auto& [number, active] : state_.active()) {
    if (!active.open) continue;
    const AttemptKey key = KeyOf(state_, active.open->record);
    if (active.memory.reported_end) ShowReportedEnd(active.memory, in_.monotonic, statuses[key]);
    const auto found = statuses.find(key);
    const auto* const observed = found == statuses.end() ? nullptr : &found->second;
    ASSIGN_OR_RETURN(Delta delta, ObserveAttempt(in_, active, observed));
    Apply(std::move(delta));
    if (found != statuses.end()) statuses.erase(found);
  }
  if (const auto follow_up = OpenFollowUp(state_)) {
    const auto found = statuses.find(KeyOf(state_, follow_up->open->record));
    Apply(ObserveFollowUp(in_, found == statuses.end() ? nullptr : &found->second));
    if (found != statuses.end()) statuses.erase(found);
  }
  for (const auto& [key, observed] : statuses) Apply(ObserveStray(in_, observed));
  return absl::OkStatus();
}

void Pass::ProcessAsks() {
  for (const std::string& caller : mode_.askers) Apply(EnqueueCaller(in_, caller));
  for (const PendingReportPtr& pending_report : mode_.pending_reports) {
    const std::string& caller = pending_report->report.next_for;
    if (!caller.empty() && pending_report->answer.ok()) Apply(EnqueueCaller(in_, caller));
  }
}

// ---- what to do --------------------------------------------------------------------------------

void Pass::Decide() {
  plan_ = DecidePlan(in_);
  Apply(ApplyPlan(in_, plan_));
  if (!plan_.conclude) state_.calls().recommendation = nullptr;  // asked before there were more
  if (plan_.conclude && Recommend()) Apply(Conclude(in_, *plan_.ending));
  if (plan_.ending || plan_.full) {
    Delta delta(state_, in_.now);
    CancelAsks(delta);
    Apply(std::move(delta));
  }
  Apply(PlanFollowUp(in_));
  deletes_ = state_.memory().ending_verb == v1::Intent::DELETE && IsEnded(state_.experiment()) &&
             plan_.stop.empty() && !OpenFollowUp(state_);
}

// The one caller there is waits for its next trial: nothing else is held up by a longer pass, whose
// one commit has the end of the last trial as well.
bool Pass::IsForSoleCaller() const {
  return mode_.pending_reports.size() == 1 && !mode_.pending_reports[0]->report.next_for.empty() &&
         state_.memory().asks.size() == 1 && IsIdle(state_);
}

template <typename TicketType>
bool Pass::Ask(const std::shared_ptr<TicketType>& ticket,  // shared with its worker
               absl::Duration patience) {
  ticket->OnDone([enqueue = options_.enqueue, key = state_.key()] {
    if (enqueue) enqueue(key);
  });
  options_.algorithm_workers->Submit(ticket);
  return ticket->Wait(patience);
}

bool Pass::Recommend() {
  const bool wanted = state_.experiment().status().current_optimal_trial().has_objective() &&
                      state_.memory().ending_verb != v1::Intent::DELETE;
  if (!wanted) return true;
  auto& call = state_.calls().recommendation;
  if (call == nullptr) {
    call = std::make_shared<RecommendTicket>();  // shared with its worker
    call->algorithm = state_.setup().algorithm;
    call->history = state_.shared_history().history_snapshot();
    if (!Ask(call, options_.patience)) return false;
  } else if (!call->Wait(options_.patience)) {
    return false;
  }
  Apply(ApplyRecommendation(in_, *std::exchange(call, nullptr)));
  return true;
}

// Before the plan, and while it is under way no further trial is made: where a search ends follows
// from its results, not from how long the model takes.
void Pass::BoundRegret() {
  auto& call = state_.calls().regret;
  if (call == nullptr) {
    if (!WantsBound(in_)) return;
    call = std::make_shared<RegretTicket>();  // shared with its worker
    call->algorithm = state_.setup().algorithm;
    call->history = state_.shared_history().history_snapshot();
    call->results = CountResults(state_.experiment().status());
    call->seed = state_.setup().seed;
    if (!Ask(call, options_.patience)) return;
  } else if (!call->Wait(absl::ZeroDuration())) {
    return;  // it will enqueue us
  }
  Apply(ApplyRegretBound(in_, *std::exchange(call, nullptr)));
}

void Pass::StopEarly() {
  if (state_.setup().stopper == nullptr) return;
  auto& call = state_.calls().stop;
  if (call != nullptr) {
    if (!call->Wait(absl::ZeroDuration())) return;  // it will enqueue us
    Apply(ApplyStopDecisions(in_, *std::exchange(call, nullptr)));
  }
  auto questions = StopQuestions(in_);
  Apply(MarkAsked(in_));
  if (questions.empty()) return;
  call = std::make_shared<StopTicket>();  // shared with its worker
  call->questions = std::move(questions);
  call->stopper = state_.setup().stopper;
  call->history = state_.shared_history().history_snapshot();
  call->curves = state_.shared_history().curves_snapshot();
  if (Ask(call, options_.patience)) Apply(ApplyStopDecisions(in_, *std::exchange(call, nullptr)));
}

void Pass::Propose() {
  auto& call = state_.calls().proposal;
  if (call == nullptr) {
    if (state_.calls().regret != nullptr) return;
    AskDecision decision = DecideAsk(in_, plan_, !effects_.forget.empty());
    Apply(std::move(decision.delta));
    if (!decision.ask) return;
    call = std::make_shared<ProposalTicket>(state_.setup().endpoint);  // shared with its worker
    call->algorithm = state_.setup().algorithm;
    call->history = state_.shared_history().history_snapshot();
    call->count = plan_.suggest;
    call->seed = state_.setup().seed;
    const int patience = IsForSoleCaller() ? kSoleCallerPatience : 1;
    if (!Ask(call, patience * options_.patience)) return;
  } else if (!call->Wait(absl::ZeroDuration())) {
    return;  // it will enqueue us
  }
  const auto answered = std::exchange(call, nullptr);
  answered->history = nullptr;  // ours alone again: adding to it makes no copy
  Apply(ApplyProposal(in_, plan_, *answered));
}

// ---- notifications -----------------------------------------------------------------------------

void Pass::RecordNotifications() {
  if (deletes_) return;
  Apply(experiment::RecordNotifications(in_, plan_.money));
  for (auto& [endpoint, delivery] : state_.calls().deliveries) {
    if (delivery.ticket == nullptr || !delivery.ticket->Wait(absl::ZeroDuration())) continue;
    Apply(ApplyDelivery(in_, *std::exchange(delivery.ticket, nullptr)));
  }
}

// Once it is committed that they are to be delivered.
Status Pass::SendNotifications() {
  if (options_.sender == nullptr || mode_.suspended || removing_) return absl::OkStatus();
  const auto endpoints = state_.experiment().status().shirabe().notifications();
  for (const v1::NotificationStatus& endpoint : endpoints) {
    auto& delivery = state_.calls().deliveries[endpoint.endpoint()];
    const absl::Duration wait = UntilDelivery(in_, endpoint);
    if (wait > absl::ZeroDuration()) effects_.Requeue(wait);
    if (wait > absl::ZeroDuration() || delivery.ticket != nullptr) continue;
    ASSIGN_OR_RETURN(const auto next, NextDelivery(in_, endpoint, delivery.after_event));
    Step();
    if (next == nullptr) {
      Apply(DropDeliveries(in_, endpoint.endpoint()));
      effects_.Requeue(absl::ZeroDuration());
      continue;
    }
    delivery.ticket = next;
    if (Ask(next, absl::ZeroDuration())) effects_.Requeue(absl::ZeroDuration());
  }
  return absl::OkStatus();
}

// It has ended, and there is nothing more to do for it but by what comes later.
bool Pass::IsOver() const {
  if (!IsEnded(state_.experiment()) || removing_) return false;
  if (HasPendingFollowUp(state_.experiment())) return false;
  return options_.sender == nullptr || !HasPendingNotifications(state_.experiment());
}

}  // namespace shirabe::experiment
