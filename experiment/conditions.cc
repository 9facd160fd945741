#include "experiment/conditions.h"

#include <algorithm>

namespace shirabe::experiment {

ExperimentKey KeyOf(const v1::Experiment& experiment) {
  return {experiment.metadata().namespace_(), experiment.metadata().name()};
}

bool IsEnded(const v1::Experiment& experiment) {
  for (const v1::Condition& condition : experiment.status().conditions()) {
    const bool terminal = condition.type() == "Succeeded" || condition.type() == "Failed";
    if (terminal && condition.status() == "True") return true;
  }
  return false;
}

v1::Condition CurrentCondition(const v1::Experiment& experiment) {
  const auto& conditions = experiment.status().conditions();
  for (int i = conditions.size() - 1; i >= 0; --i) {
    if (conditions[i].status() == "True") return conditions[i];
  }
  v1::Condition created;
  created.set_type("Created");
  created.set_status("True");
  return created;
}

bool HasPendingNotifications(const v1::Experiment& experiment) {
  const auto& endpoints = experiment.status().shirabe().notifications();
  return std::any_of(endpoints.begin(), endpoints.end(),
                     [](const v1::NotificationStatus& one) { return one.pending() > 0; });
}

bool HasPendingFollowUp(const v1::Experiment& experiment) {
  const v1::FollowUpPhase phase = experiment.status().shirabe().on_success().phase();
  return phase == v1::FOLLOW_UP_PENDING || phase == v1::FOLLOW_UP_RUNNING;
}

bool NeedsOwner(const v1::Experiment& experiment) {
  return !IsEnded(experiment) || HasPendingNotifications(experiment) ||
         HasPendingFollowUp(experiment);
}

}  // namespace shirabe::experiment
