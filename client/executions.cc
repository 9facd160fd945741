#include "client/executions.h"

#include "experiment/conditions.h"

namespace shirabe::client {

StatusOr<Execution> ExecutionOf(Client& client, const TrialKey& key) {
  if (key.number != kFollowUpNumber) {
    ASSIGN_OR_RETURN(const v1::Trial trial, client.GetTrial(key));
    return Execution{trial.attempts(),
                     trial.phase() != v1::TRIAL_PENDING && trial.phase() != v1::TRIAL_RUNNING};
  }
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key.experiment));
  const v1::OnSuccessStatus& status = experiment.status().shirabe().on_success();
  if (!experiment.spec().shirabe().has_on_success()) {
    return absl::NotFoundError("experiment " + key.experiment.name +
                               " has no spec.shirabe.onSuccess, so nothing follows it");
  }
  return Execution{status.attempts(), experiment.status().shirabe().has_on_success() &&
                                          !experiment::HasPendingFollowUp(experiment)};
}

}  // namespace shirabe::client
