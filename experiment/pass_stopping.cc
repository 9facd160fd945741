// Early stopping: the rule is asked about every trial that has reported something new, away from
// this thread, and an attempt whose trial it gives up on is asked to end.
//
// The trial reaches its phase in one place whatever comes first, FinishTrial: if the program ends
// by itself before the request is stored, there is no attempt left to ask; once it is stored, the
// cause of the attempt's end is ours, and a preemption or a completion in between changes nothing.
#include <utility>

#include "experiment/reconcile_pass.h"
#include "experiment/spec/objective_value.h"

namespace shirabe::experiment {
namespace {

bool CanBeStoppedEarly(const ActiveTrial& live) {
  return live.open && live.open->record.state() == v1::ATTEMPT_RUNNING && !live.exited &&
         !live.open->record.has_stop();
}

}  // namespace

void Pass::StopEarly() {
  if (state_.stopper == nullptr) return;
  if (state_.stop_ticket != nullptr) {
    if (!state_.stop_ticket->Wait(absl::ZeroDuration())) return;  // it will enqueue us
    ApplyStopDecisions(*std::exchange(state_.stop_ticket, nullptr));
  }
  if (!AskStopper() || !state_.stop_ticket->Wait(options_.patience)) return;
  ApplyStopDecisions(*std::exchange(state_.stop_ticket, nullptr));
}

// False if there is nothing to ask.
bool Pass::AskStopper() {
  auto ticket = std::make_shared<StopTicket>();  // shared: see experiment/algorithm_workers.h
  for (auto& [number, live] : state_.live()) {
    if (!std::exchange(live.judge, false) || !CanBeStoppedEarly(live)) continue;
    ticket->questions.push_back({.trial = number, .attempt = live.open->record.number()});
  }
  if (ticket->questions.empty()) return false;
  ticket->stopper = state_.stopper;
  ticket->history = state_.history_snapshot();
  ticket->curves = state_.curves_snapshot();
  ticket->on_done = [enqueue = options_.enqueue, key = state_.key()] {
    if (enqueue) enqueue(key);
  };
  state_.stop_ticket = ticket;
  options_.proposer->Submit(std::move(ticket));
  return true;
}

// An answer holds for the attempt that it was about: another one has gone back to a checkpoint, and
// what it was judged by may no longer count.
void Pass::ApplyStopDecisions(const StopTicket& ticket) {
  for (const StopTicket::Question& question : ticket.questions) {
    const auto found = state_.live().find(question.trial);
    if (found == state_.live().end() || !CanBeStoppedEarly(found->second)) continue;
    ActiveTrial& live = found->second;
    if (live.open->record.number() != question.attempt) continue;
    if (question.reason.ok()) {
      if (*question.reason) RequestStop(live, v1::EARLY_STOPPED, **question.reason);
      continue;
    }
    const std::string trouble = Message(question.reason.status());
    if (std::exchange(state_.stopper_error, trouble) != trouble) {
      Event(&live, true, "EarlyStoppingFailed", trouble);
    }
  }
}

// Its observations count as those of a trial that succeeded; without a finite one it is of no use
// to the algorithm, as there.
void Pass::RecordEarlyStop(ActiveTrial& live) {
  v1::Trial& trial = live.trial.record;
  trial.set_message(live.open->record.stop().reason());
  Event(&live, false, trial.reason(), trial.message());
  if (trial.has_objective()) return;
  trial.set_infeasible(true);
  v1::ShirabeStatus& status = *state_.mutable_status().mutable_shirabe();
  status.set_trials_infeasible(status.trials_infeasible() + 1);
}

// Which trial to use: the algorithm is asked once, when all trials have ended and before the
// experiment does, away from this thread. Without an answer that differs from the best result
// nothing is stored, and an error only leaves the best result as it is.

// False until the algorithm has answered.
bool Pass::Recommended() {
  const bool wanted = state_.experiment().status().current_optimal_trial().has_objective() &&
                      state_.ending_verb != v1::Intent::DELETE;
  if (!wanted) return true;
  if (state_.recommend_ticket == nullptr) {
    state_.recommend_ticket = std::make_shared<RecommendTicket>();  // shared with its worker
    state_.recommend_ticket->algorithm = state_.algorithm;
    state_.recommend_ticket->history = state_.history_snapshot();
    state_.recommend_ticket->on_done = [enqueue = options_.enqueue, key = state_.key()] {
      if (enqueue) enqueue(key);
    };
    options_.proposer->Submit(state_.recommend_ticket);
  }
  if (!state_.recommend_ticket->Wait(options_.patience)) return false;
  ApplyRecommendation(*std::exchange(state_.recommend_ticket, nullptr));
  return true;
}

void Pass::ApplyRecommendation(const RecommendTicket& ticket) {
  const auto& answer = *ticket.result;
  if (!answer.ok()) return Event(nullptr, true, "RecommendationFailed", Message(answer.status()));
  if (!answer->has_value()) return;
  const suggestion::Recommendation& found = **answer;
  if (found.trial < 0 || found.trial >= state_.history().size()) return;
  const v1::ObjectiveSpec& objective = state_.experiment().spec().objective();
  v1::RecommendedTrial recommended;
  recommended.set_number(found.trial + 1);
  recommended.set_trial_name(TrialName({state_.key(), recommended.number()}));
  for (v1::Assignment& assignment : state_.space().Decode(state_.history().point(found.trial))) {
    *recommended.add_parameter_assignments() = std::move(assignment);
  }
  recommended.set_predicted(LossOf(objective, found.loss));  // its own inverse
  recommended.set_deviation(found.deviation);
  recommended.set_reason(found.reason);
  Event(nullptr, false, "TrialRecommended",
        "trial " + recommended.trial_name() + ": " + recommended.reason());
  *state_.mutable_status().mutable_shirabe()->mutable_recommended_trial() = std::move(recommended);
}

}  // namespace shirabe::experiment
