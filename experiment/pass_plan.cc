// The deciding half of a pass: the plan, the algorithm.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "experiment/attempt_request.h"
#include "experiment/conditions.h"
#include "experiment/reconcile_pass.h"
#include "experiment/report_queue.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/submission.h"
#include "metrics/describe_source.h"

namespace shirabe::experiment {
namespace {

// An algorithm that failed is asked again after so long, twice as long each time it fails again.
constexpr absl::Duration kMinAlgorithmRetry = absl::Seconds(1);
constexpr absl::Duration kMaxAlgorithmRetry = absl::Minutes(1);
// An algorithm that gave fewer points than it was asked for is asked for the others.
constexpr absl::Duration kPartialProposalRetry = absl::Milliseconds(400);

}  // namespace

// ---- the plan ----------------------------------------------------------------------------------

void Pass::Decide() {
  PlanInput input{.experiment = &state_.experiment(),
                  .suspended = mode_.suspended,
                  .limits = options_.limits,
                  .money = ComputeBudget(),
                  .now = now_};
  for (const auto& [number, live] : state_.live()) {
    if (IsTerminal(live.trial.record.phase())) continue;
    input.live.push_back({&live.trial.record, live.open ? &live.open->record : nullptr});
  }
  if (state_.experiment().spec().shirabe().ask_and_tell()) {
    input.asked = static_cast<int>(state_.asks.size());
  }
  plan_ = MakePlan(input);
  ReserveQuota();
  for (const int64_t number : plan_.kill) {
    ActiveTrial& live = state_.live().at(number);
    live.trial.record.set_reason("ExperimentEnded");
    *live.trial.record.mutable_completion_time() = ToProto(now_);
    state_.SetPhase(live, v1::TRIAL_KILLED);
  }
  for (const Plan::Stop& stop : plan_.stop) RequestStop(state_.live().at(stop.trial), stop.cause);
  if (EndsAtOnce()) {
    for (auto& [number, live] : state_.live()) RevokeGrace(live);
  }
  for (const int64_t number : plan_.start) Open(state_.live().at(number));
  UpdateWaitReasons();
  if (!plan_.conclude) state_.recommend_ticket = nullptr;  // asked before there were more trials
  if (plan_.conclude && Recommended()) Conclude(*plan_.ending);
  if (plan_.ending || plan_.full) CancelAsks(state_);
  delete_ = state_.ending_verb == v1::Intent::DELETE && IsEnded(state_.experiment()) &&
            plan_.stop.empty();
  if (delete_) {
    state_.batch() = db::Batch{};
    state_.batch().experiment = state_.key();
    state_.batch().delete_experiment = true;
  }
  if (plan_.more && !plan_.start.empty()) Requeue(absl::ZeroDuration());
  Requeue(plan_.wake);
}

// What the namespace has no room for waits until others of it have ended.
void Pass::ReserveQuota() {
  if (options_.room == nullptr) return;
  const auto open = std::count_if(state_.live().begin(), state_.live().end(),
                                  [](const auto& entry) { return entry.second.open.has_value(); });
  const auto starts = static_cast<int64_t>(plan_.start.size());
  const int64_t wanted = starts + plan_.suggest;
  const int64_t granted = options_.room->Reserve(state_.key(), open, wanted);
  if (granted == wanted) return;
  plan_.more = false;
  plan_.waiting = plan_.limited = absl::StrFormat(
      "%d trials at the same time are the most for a namespace here (--max-namespace-trials of the "
      "server), and others of it run",
      options_.limits.namespace_parallel_trials);
  for (int64_t i = granted; i < starts; ++i) plan_.why[plan_.start[i]] = plan_.waiting;
  plan_.start.resize(std::min(starts, granted));
  plan_.suggest = static_cast<int>(std::max<int64_t>(0, granted - starts));
}

// What a new trial would get.
trial::PlacementQuote Pass::QuotePlacement() const {
  const v1::ExperimentSpec& spec = state_.experiment().spec();
  return options_.executor->QuotePlacement(state_.key(), spec.trial_template().trial_spec(),
                                           {.policy = spec.shirabe().capacity()});
}

// Costs nothing to ask where no budget is set.
BudgetState Pass::ComputeBudget() const {
  const v1::ExperimentSpec& spec = state_.experiment().spec();
  BudgetState money;
  if (!spec.shirabe().budget().has_max_cost()) return money;
  const absl::Duration reserve = ReservedTime(GraceOf(state_.experiment()));
  const trial::PlacementQuote quote = QuotePlacement();
  money.cap = spec.shirabe().budget().max_cost();
  money.spent = state_.experiment().status().shirabe().cost();
  money.next = CostOf(reserve, quote.price_per_hour);
  for (const auto& [number, live] : state_.live()) {
    if (!live.open) continue;
    const v1::Attempt& attempt = live.open->record;
    const double price = IsPlaced(attempt) ? attempt.placements(0).price_per_hour()
                                           : quote.price_per_hour;  // the highest there is
    money.spent += CostOf(live.Ran(monotonic_), price);
    money.reserved += CostOf(reserve, price);
  }
  return money;
}

// Written only when it changes.
void Pass::UpdateWaitReasons() {
  for (const auto& [number, why] : plan_.why) {
    ActiveTrial& live = state_.live().at(number);
    if (live.open || live.trial.record.waiting() == why) continue;
    live.trial.record.set_waiting(why);
    live.trial_changed = true;
  }
}

bool Pass::EndsAtOnce() const {
  return state_.ending_verb == v1::Intent::CANCEL || state_.ending_verb == v1::Intent::DELETE;
}

// Written with the attempt: a controller that takes the experiment over gives it no more time.
void Pass::RevokeGrace(ActiveTrial& live) {
  if (!live.open || !live.open->record.has_stop()) return;
  v1::StopRequest& stop = *live.open->record.mutable_stop();
  if (FromProto(stop.deadline()) <= FromProto(stop.requested())) return;
  *stop.mutable_deadline() = stop.requested();
  live.open_changed = true;
}

void Pass::RequestStop(ActiveTrial& live, v1::Cause cause, const std::string& reason) {
  v1::Attempt& attempt = live.open->record;
  if (!attempt.has_stop()) {
    attempt.mutable_stop()->set_cause(cause);
    attempt.mutable_stop()->set_reason(reason);
    *attempt.mutable_stop()->mutable_requested() = ToProto(now_);
    *attempt.mutable_stop()->mutable_deadline() = ToProto(now_ + GraceOf(state_.experiment()));
    live.open_changed = true;
  }
  // One that has not been started yet is closed by the next pass; see ObserveOpen.
  if (!live.started) Requeue(absl::ZeroDuration());
}

void Pass::Open(ActiveTrial& live) {
  state_.OpenAttempt(live, now_);
  *live.open->record.mutable_cursor() = metrics::StartCursor(SourceOf(live));
}

void Pass::SetCondition(const std::string& type, const std::string& reason,
                        const std::string& message) {
  v1::ExperimentStatus& status = state_.mutable_status();
  v1::Condition* found = nullptr;
  for (v1::Condition& condition : *status.mutable_conditions()) {
    if (condition.type() == type) found = &condition;
    if (condition.type() == type || condition.type() == "Created") continue;
    if (condition.status() == "True") *condition.mutable_last_transition_time() = ToProto(now_);
    condition.set_status("False");
  }
  if (found == nullptr) {
    found = status.add_conditions();
    found->set_type(type);
  }
  if (found->status() != "True") *found->mutable_last_transition_time() = ToProto(now_);
  found->set_status("True");
  found->set_reason(reason);
  found->set_message(message);
  *found->mutable_last_update_time() = ToProto(now_);
}

void Pass::Conclude(const Plan::Ending& ending) {
  SetCondition(ending.succeeded ? "Succeeded" : "Failed", ending.reason, ending.message);
  *state_.mutable_status().mutable_completion_time() = ToProto(now_);
  SetWaiting("");
  Event(nullptr, !ending.succeeded, ending.reason, ending.message);
}

// ---- the algorithm -----------------------------------------------------------------------------

void Pass::SetWaiting(const std::string& why) {
  const std::string& said = state_.experiment().status().shirabe().waiting();
  if (said == why) return;
  state_.mutable_status().mutable_shirabe()->set_waiting(why);
}

void Pass::Propose() {
  if (state_.ticket != nullptr) {
    if (!state_.ticket->Wait(absl::ZeroDuration())) return;  // it will enqueue us
  } else {
    if (plan_.suggest == 0 || state_.wait_for_change) {
      const bool said =
          state_.wait_for_change || state_.experiment().status().shirabe().exhausted();
      if (!plan_.waiting.empty() || !said) SetWaiting(plan_.waiting);
      return;
    }
    if (AddStartPoints()) return;
    if (monotonic_ < state_.trouble.ask_again) {
      return Requeue(state_.trouble.ask_again - monotonic_);
    }
    const trial::PlacementQuote quote = QuotePlacement();
    if (!quote.waiting.empty()) {
      // What has ended in this pass leaves its place after the commit.
      if (!forget_.empty()) return Requeue(absl::ZeroDuration());
      if (state_.trouble.wait.MayRecordReason(monotonic_)) SetWaiting(quote.waiting);
      return Requeue(state_.trouble.wait.Pause(monotonic_));
    }
    state_.trouble.wait = {};
    AskAlgorithm();
    if (!state_.ticket->Wait(options_.patience)) return;
  }
  const auto ticket = std::exchange(state_.ticket, nullptr);
  ticket->history = nullptr;  // ours alone again: adding to it makes no copy
  if (!ticket->result->ok()) return RecordAlgorithmFailure(ticket->result->status());
  state_.trouble = {};
  ApplyProposal(std::move(**ticket->result), ticket->count);
}

// The experiment is degraded, not dead: what runs goes on, nothing of the answer is used, and the
// algorithm is asked again after a while, however long its repair takes. An event says what was
// wrong with it, once for each kind of trouble.
void Pass::RecordAlgorithmFailure(const Status& status) {
  const int doublings = std::min(state_.trouble.failures++, 10);
  const absl::Duration pause = std::min(kMinAlgorithmRetry * (1 << doublings), kMaxAlgorithmRetry);
  state_.trouble.ask_again = monotonic_ + pause;
  const std::string trouble = Message(status);
  SetWaiting(trouble + "; trying again in " + FormatAge(pause));
  if (std::exchange(state_.trouble.reported_error, trouble) != trouble) {
    Event(nullptr, true, absl::IsDataLoss(status) ? "AlgorithmAnswerRefused" : "SuggestionFailed",
          trouble);
  }
  Requeue(pause);
}

// The points that the user wants tried first are trials like any other.
bool Pass::AddStartPoints() {
  const v1::ExperimentSpec& spec = state_.experiment().spec();
  bool added = false;
  for (int i = 0; i < plan_.suggest && state_.history().size() < spec.shirabe().start_size(); ++i) {
    const auto assignments = StartPoint(spec, static_cast<int>(state_.history().size()));
    const auto point = assignments.ok() ? state_.space().Encode(*assignments)
                                        : StatusOr<suggestion::Point>(assignments.status());
    suggestion::Suggestion suggestion;
    suggestion.point = point.ok() ? *point : suggestion::Point(state_.space().size(), 0.0);
    suggestion.explanation = point.ok() ? "a start point of the specification"
                                        : "in place of a start point: " + Message(point.status());
    AddTrial(suggestion);
    added = true;
  }
  if (added) {
    RecordStarted();
    Requeue(absl::ZeroDuration());
  }
  return added;
}

void Pass::AddTrial(const suggestion::Suggestion& suggestion) {
  ActiveTrial& live = state_.AddTrial(suggestion, now_);
  AssignToCaller(state_, live);
  Open(live);
}

void Pass::AskAlgorithm() {
  state_.ticket = std::make_shared<ProposalTicket>();  // shared: see experiment/algorithm_workers.h
  state_.ticket->algorithm = state_.algorithm;
  state_.ticket->history = state_.history_snapshot();
  state_.ticket->count = plan_.suggest;
  state_.ticket->seed = state_.seed;
  state_.ticket->lane = state_.endpoint;
  state_.ticket->on_done = [enqueue = options_.enqueue, key = state_.key()] {
    if (enqueue) enqueue(key);
  };
  options_.proposer->Submit(state_.ticket);
}

void Pass::ApplyProposal(suggestion::Proposal proposal, int asked) {
  using Outcome = suggestion::Proposal::Outcome;
  const size_t room = static_cast<size_t>(std::max(0, plan_.suggest));
  if (proposal.suggestions.size() > room) proposal.suggestions.resize(room);
  for (const suggestion::Suggestion& suggestion : proposal.suggestions) {
    AddTrial(suggestion);
  }
  if (!proposal.suggestions.empty()) {
    RecordStarted();
    state_.SetMemo(proposal.memo);
    if (proposal.algorithm != state_.experiment().status().shirabe().algorithm()) {
      state_.mutable_status().mutable_shirabe()->set_algorithm(proposal.algorithm);
    }
  }
  state_.wait_for_change = proposal.outcome == Outcome::kWait;
  SetWaiting(proposal.outcome == Outcome::kOk ? plan_.limited : proposal.reason);
  const size_t given = proposal.suggestions.size();
  if (proposal.outcome == Outcome::kOk && (plan_.more || given < room)) {
    const bool all = given >= std::min(room, static_cast<size_t>(asked));
    Requeue(all ? absl::ZeroDuration() : kPartialProposalRetry);
  }
  if (proposal.outcome == Outcome::kExhausted) {
    state_.mutable_status().mutable_shirabe()->set_exhausted(true);
    Requeue(absl::ZeroDuration());
  }
}

void Pass::RecordStarted() {
  v1::ExperimentStatus& status = state_.mutable_status();
  if (!status.has_start_time()) *status.mutable_start_time() = ToProto(now_);
  if (CurrentCondition(state_.experiment()).type() != "Running") {
    SetCondition("Running", "ExperimentRunning", "trials are running");
  }
}

}  // namespace shirabe::experiment
