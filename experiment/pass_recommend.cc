// Which trial to use: the algorithm is asked once, when all trials have ended and before the
// experiment does, away from this thread. Without an answer that differs from the best result
// nothing is stored, and an error only leaves the best result as it is.
#include <utility>

#include "experiment/objective.h"
#include "experiment/pass.h"

namespace shirabe::experiment {

// False until the algorithm has answered.
bool Pass::Recommended() {
  const bool wanted = state_.experiment().status().current_optimal_trial().has_objective() &&
                      state_.ending_verb != v1::Intent::DELETE;
  if (!wanted) return true;
  if (state_.recommend_ticket == nullptr) {
    state_.recommend_ticket = std::make_shared<RecommendTicket>();  // shared: see proposer.h
    state_.recommend_ticket->algorithm = state_.algorithm;
    state_.recommend_ticket->history = state_.history_snapshot();
    state_.recommend_ticket->on_done = [enqueue = options_.enqueue, key = state_.key()] {
      if (enqueue) enqueue(key);
    };
    options_.proposer->Submit(state_.recommend_ticket);
  }
  if (!state_.recommend_ticket->Wait(options_.patience)) return false;
  TakeRecommendation(*std::exchange(state_.recommend_ticket, nullptr));
  return true;
}

void Pass::TakeRecommendation(const RecommendTicket& ticket) {
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
