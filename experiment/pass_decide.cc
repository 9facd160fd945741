// The deciding half of a pass: intents, the plan, the algorithm.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/number.h"
#include "experiment/asks.h"
#include "experiment/pass.h"
#include "experiment/request.h"
#include "experiment/spec.h"
#include "experiment/submit.h"

namespace shirabe::experiment {
namespace {

// An algorithm that failed is asked again after so long, twice as long each time it fails again.
constexpr absl::Duration kAskAgain = absl::Seconds(1);
constexpr absl::Duration kAskAgainAtMost = absl::Minutes(1);

// "parallelTrialCount 2 -> 4, maxTrialCount 10 -> none"
std::string Changes(const v1::ExperimentSpec& before, const v1::ExperimentSpec& after) {
  std::vector<std::string> parts;
  const auto add = [&](const char* field, const std::string& old, const std::string& now) {
    if (old != now) parts.push_back(absl::StrCat(field, " ", old, " -> ", now));
  };
  const auto count = [](bool has, int32_t value) { return has ? absl::StrCat(value) : "none"; };
  const auto goal = [](const v1::ObjectiveSpec& objective) {
    return objective.has_goal() ? FormatNumber(objective.goal()) : "none";
  };
  add("parallelTrialCount", absl::StrCat(before.parallel_trial_count()),
      absl::StrCat(after.parallel_trial_count()));
  add("maxTrialCount", count(before.has_max_trial_count(), before.max_trial_count()),
      count(after.has_max_trial_count(), after.max_trial_count()));
  add("maxFailedTrialCount",
      count(before.has_max_failed_trial_count(), before.max_failed_trial_count()),
      count(after.has_max_failed_trial_count(), after.max_failed_trial_count()));
  add("objective.goal", goal(before.objective()), goal(after.objective()));
  return parts.empty() ? "nothing differs" : absl::StrJoin(parts, ", ");
}

}  // namespace

// ---- intents -----------------------------------------------------------------------------------

Status Pass::TakeIntents() {
  if (monotonic_ < state_.next_intents && !mode_.heed) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto intents, options_.store->ListIntents(state_.key()));
  state_.next_intents = monotonic_ + kIntentInterval;
  for (const v1::Intent& intent : intents) {
    Apply(intent);
    // A deletion and a question stay written until they are carried out, in case we die before.
    const bool stays = intent.verb() == v1::Intent::DELETE || intent.verb() == v1::Intent::ASK;
    if (!stays) state_.batch().intents_done.push_back(intent.id());
  }
  return absl::OkStatus();
}

void Pass::Apply(const v1::Intent& intent) {
  v1::ShirabeStatus& status = *state_.mutable_status().mutable_shirabe();
  switch (intent.verb()) {
    case v1::Intent::PAUSE:
      if (!status.paused()) NoteActor(intent, "PauseRequested", "no new trials are started");
      status.set_paused(true);
      break;
    case v1::Intent::RESUME:
      if (status.paused()) NoteActor(intent, "ResumeRequested", "it goes on");
      status.set_paused(false);
      break;
    case v1::Intent::SCALE: Scale(intent); break;
    case v1::Intent::ASK: TakeAsk(state_, intent); break;
    case v1::Intent::RETRY: Retry(intent); break;
    case v1::Intent::STOP:
    case v1::Intent::CANCEL:
    case v1::Intent::DELETE: End(intent); break;
    default: break;
  }
}

// Who asked for it first is who stopped it.
void Pass::End(const v1::Intent& intent) {
  v1::ShirabeStatus& status = *state_.mutable_status().mutable_shirabe();
  const bool deletes = intent.verb() == v1::Intent::DELETE;
  if (!status.stopping()) {
    NoteActor(intent, "StopRequested",
              deletes                               ? "it is to be deleted"
              : intent.verb() == v1::Intent::CANCEL ? "it is to end at once"
                                                    : "it is to end");
    if (!intent.actor().name().empty()) *status.mutable_stopped_by() = intent.actor();
  }
  status.set_stopping(true);
  status.set_stop_reason(deletes ? "deleted by a user" : "stopped by a user");
  state_.ending_verb = intent.verb();
}

// Events are never changed or removed while their experiment is there.
void Pass::NoteActor(const v1::Intent& intent, const std::string& reason,
                     const std::string& message) {
  if (intent.actor().name().empty()) return;
  v1::Event event;
  event.set_reason(reason);
  event.set_message(message);
  event.set_trial(intent.trial());
  *event.mutable_actor() = intent.actor();
  state_.AddEvent(std::move(event), now_);
}

void Pass::Retry(const v1::Intent& intent) {
  const Status status = TryAgain(state_, intent.trial(), *options_.store, now_);
  if (!status.ok()) Event(nullptr, true, "RetryRefused", Message(status));
  if (status.ok()) NoteActor(intent, "RetryRequested", "its point is tried again");
}

// Changes the counts; an experiment that ended at maxTrialCount goes on if it may.
void Pass::Scale(const v1::Intent& intent) {
  v1::Experiment& experiment = state_.mutable_experiment();
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  const v1::ExperimentSpec before = spec;
  experiment.mutable_metadata()->set_generation(experiment.metadata().generation() + 1);
  if (intent.replace()) {
    spec.clear_max_trial_count();
    spec.clear_max_failed_trial_count();
    spec.mutable_objective()->clear_goal();
  }
  if (intent.has_parallel_trial_count()) {
    spec.set_parallel_trial_count(std::max(1, intent.parallel_trial_count()));
  }
  if (intent.has_max_trial_count()) spec.set_max_trial_count(intent.max_trial_count());
  if (intent.has_max_failed_trial_count()) {
    spec.set_max_failed_trial_count(intent.max_failed_trial_count());
  }
  if (intent.has_goal()) spec.mutable_objective()->set_goal(intent.goal());
  NoteActor(intent, "ChangeRequested", Changes(before, spec));
  if (!intent.actor().name().empty()) {
    *experiment.mutable_status()->mutable_shirabe()->mutable_changed_by() = intent.actor();
  }
  const v1::Condition current = CurrentCondition(experiment);
  const bool more =
      !spec.has_max_trial_count() || spec.max_trial_count() > experiment.status().trials();
  if (current.reason() != "ExperimentMaxTrialsReached" || !more) return;
  if (spec.resume_policy() != v1::LONG_RUNNING && spec.resume_policy() != v1::FROM_VOLUME) return;
  experiment.mutable_status()->clear_completion_time();
  experiment.mutable_status()->mutable_shirabe()->clear_recommended_trial();
  SetCondition("Restarting", "ExperimentRestarting", "maxTrialCount was raised");
}

// ---- the plan ----------------------------------------------------------------------------------

void Pass::Decide() {
  PlanInput input{.experiment = &state_.experiment(),
                  .suspended = mode_.suspended,
                  .money = CountMoney(),
                  .now = now_};
  for (const auto& [number, live] : state_.live()) {
    if (IsTerminal(live.trial.record.phase())) continue;
    input.live.push_back({&live.trial.record, live.open ? &live.open->record : nullptr});
  }
  if (state_.experiment().spec().shirabe().ask_and_tell()) {
    input.asked = static_cast<int>(state_.asks.size());
  }
  plan_ = MakePlan(input);
  for (const int64_t number : plan_.kill) {
    Live& live = state_.live().at(number);
    live.trial.record.set_reason("ExperimentEnded");
    *live.trial.record.mutable_completion_time() = ToProto(now_);
    state_.SetPhase(live, v1::TRIAL_KILLED);
  }
  for (const Plan::Stop& stop : plan_.stop) RequestStop(state_.live().at(stop.trial), stop.cause);
  for (const int64_t number : plan_.start) Open(state_.live().at(number));
  SayWhyWaiting();
  if (!plan_.conclude) state_.recommend_ticket = nullptr;  // asked before there were more trials
  if (plan_.conclude && Recommended()) Conclude(*plan_.ending);
  if (plan_.ending || plan_.full) DropAsks(state_);
  delete_ = state_.ending_verb == v1::Intent::DELETE && IsEnded(state_.experiment()) &&
            plan_.stop.empty();
  if (delete_) {
    state_.batch() = db::Batch{};
    state_.batch().experiment = state_.key();
    state_.batch().delete_experiment = true;
  }
  Requeue(plan_.wake);
}

// What a new trial would get.
trial::Offer Pass::Quote() const {
  const v1::ExperimentSpec& spec = state_.experiment().spec();
  return options_.executor->Quote(spec.trial_template().trial_spec(),
                                  {.policy = spec.shirabe().capacity()});
}

// Costs nothing to ask where nobody set a budget.
Money Pass::CountMoney() const {
  const v1::ExperimentSpec& spec = state_.experiment().spec();
  Money money;
  if (!spec.shirabe().budget().has_max_cost()) return money;
  const absl::Duration reserve = ReservedTime(GraceOf(state_.experiment()));
  const trial::Offer offer = Quote();
  money.cap = spec.shirabe().budget().max_cost();
  money.spent = state_.experiment().status().shirabe().cost();
  money.next = CostOf(reserve, offer.price_per_hour);
  for (const auto& [number, live] : state_.live()) {
    if (!live.open) continue;
    const v1::Attempt& attempt = live.open->record;
    const double price = IsPlaced(attempt) ? attempt.placements(0).price_per_hour()
                                           : offer.price_per_hour;  // the highest there is
    money.spent += CostOf(live.Ran(monotonic_), price);
    money.reserved += CostOf(reserve, price);
  }
  return money;
}

// Written only when it changes.
void Pass::SayWhyWaiting() {
  for (const auto& [number, why] : plan_.why) {
    Live& live = state_.live().at(number);
    if (live.open || live.trial.record.waiting() == why) continue;
    live.trial.record.set_waiting(why);
    live.trial_changed = true;
  }
}

void Pass::RequestStop(Live& live, v1::Cause cause, const std::string& reason) {
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

void Pass::Open(Live& live) {
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
  if (state_.experiment().status().shirabe().waiting() == why) return;
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
    const trial::Offer offer = Quote();
    if (!offer.waiting.empty()) {
      SetWaiting(offer.waiting);
      return Requeue(absl::Seconds(1));
    }
    AskAlgorithm();
    if (!state_.ticket->Wait(options_.patience)) return;
  }
  const auto ticket = std::exchange(state_.ticket, nullptr);
  ticket->history = nullptr;  // ours alone again: adding to it makes no copy
  if (!ticket->result->ok()) return NoteFailure(ticket->result->status());
  state_.trouble = {};
  TakeProposal(std::move(**ticket->result));
}

// The experiment is degraded, not dead: what runs goes on, nothing of the answer is used, and the
// algorithm is asked again after a while, however long it takes somebody to repair it. An event
// says what was wrong with it, once for each kind of trouble.
void Pass::NoteFailure(const Status& status) {
  const int doublings = std::min(state_.trouble.failures++, 10);
  const absl::Duration pause = std::min(kAskAgain * (1 << doublings), kAskAgainAtMost);
  state_.trouble.ask_again = monotonic_ + pause;
  const std::string trouble = Message(status);
  SetWaiting(trouble + "; trying again in " + FormatAge(pause));
  if (std::exchange(state_.trouble.told, trouble) != trouble) {
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
    NoteStarted();
    Requeue(absl::ZeroDuration());
  }
  return added;
}

void Pass::AddTrial(const suggestion::Suggestion& suggestion) {
  Live& live = state_.AddTrial(suggestion, now_);
  GiveToCaller(state_, live);
  Open(live);
}

void Pass::AskAlgorithm() {
  state_.ticket = std::make_shared<ProposalTicket>();  // shared: see experiment/proposer.h
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

void Pass::TakeProposal(suggestion::Proposal proposal) {
  using Outcome = suggestion::Proposal::Outcome;
  const size_t room = static_cast<size_t>(std::max(0, plan_.suggest));
  if (proposal.suggestions.size() > room) proposal.suggestions.resize(room);
  for (const suggestion::Suggestion& suggestion : proposal.suggestions) {
    AddTrial(suggestion);
  }
  if (!proposal.suggestions.empty()) {
    NoteStarted();
    state_.SetMemo(proposal.memo);
    if (proposal.algorithm != state_.experiment().status().shirabe().algorithm()) {
      state_.mutable_status().mutable_shirabe()->set_algorithm(proposal.algorithm);
    }
  }
  state_.wait_for_change = proposal.outcome == Outcome::kWait;
  SetWaiting(proposal.outcome == Outcome::kOk ? "" : proposal.reason);
  if (proposal.outcome == Outcome::kExhausted) {
    state_.mutable_status().mutable_shirabe()->set_exhausted(true);
    Requeue(absl::ZeroDuration());
  }
}

void Pass::NoteStarted() {
  v1::ExperimentStatus& status = state_.mutable_status();
  if (!status.has_start_time()) *status.mutable_start_time() = ToProto(now_);
  if (CurrentCondition(state_.experiment()).type() != "Running") {
    SetCondition("Running", "ExperimentRunning", "trials are running");
  }
}

}  // namespace shirabe::experiment
