// What an owner loads for the early-stopping rule and for the algorithm's warm start, where the
// experiment asks for them.
#include <utility>

#include "base/timestamp.h"
#include "experiment/experiment_state.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/spec/objective_value.h"
#include "experiment/warm_start.h"

namespace shirabe::experiment {

// A decision that was due may have been lost with its process: every live trial is judged again.
Status State::LoadStopper(db::Store& store) {
  const v1::ExperimentSpec& spec = experiment().spec();
  if (!spec.has_early_stopping()) return absl::OkStatus();
  ASSIGN_OR_RETURN(stopper, suggestion::CreateStopper(
                                spec.early_stopping().algorithm_name(),
                                {.settings = SettingsOf(spec.early_stopping().algorithm_settings()),
                                 .maximize = spec.objective().type() == v1::MAXIMIZE}));
  const std::string& metric = spec.objective().objective_metric_name();
  for (int64_t number = 1; number <= history_->size(); ++number) {
    ASSIGN_OR_RETURN(const auto rows,
                     store.ListObservations({.trial = {key_, number}, .metric = metric}));
    std::map<int64_t, double> losses;
    for (const db::StoredObservation& row : rows)
      losses[row.step] = LossOf(spec.objective(), row.value);
    MutableCurve(number) = suggestion::CurveOf(losses);
  }
  for (auto& [number, live] : live_) live.judge = true;
  return absl::OkStatus();
}

Status State::LoadPrior(db::Store& store) {
  if (!experiment().spec().shirabe().has_warm_start()) return absl::OkStatus();
  ASSIGN_OR_RETURN(WarmStart found, ReadWarmStart(store, experiment(), *space_));
  const v1::ShirabeStatus& known = experiment().status().shirabe();
  const auto count = static_cast<int64_t>(found.trials.size());
  if (!known.has_prior_trials() || known.prior_trials() != count ||
      known.prior_left_out() != found.left_out) {
    v1::Event event;
    event.set_warning(count == 0 || known.has_prior_trials());
    event.set_reason("WarmStarted");
    event.set_message(ToString(found));
    AddEvent(std::move(event), FromProto(experiment().metadata().creation_timestamp()));
    v1::ShirabeStatus& status = *mutable_status().mutable_shirabe();
    status.set_prior_trials(count);
    status.set_prior_left_out(found.left_out);
  }
  history_->SetPrior(std::move(found.trials));
  return absl::OkStatus();
}

}  // namespace shirabe::experiment
