#include "experiment/after_end.h"

#include <algorithm>

#include "experiment/conditions.h"

namespace shirabe::experiment {

bool HasPendingNotifications(const v1::Experiment& experiment) {
  const auto& endpoints = experiment.status().shirabe().notifications();
  return std::any_of(endpoints.begin(), endpoints.end(),
                     [](const v1::NotificationStatus& one) { return one.pending() > 0; });
}

bool NeedsOwner(const v1::Experiment& experiment) {
  return !IsEnded(experiment) || HasPendingNotifications(experiment);
}

}  // namespace shirabe::experiment
