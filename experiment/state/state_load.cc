// How an owner loads its experiment: what is live of it, the history, and what the early-stopping
// rule and a warm start read.
#include <utility>

#include "base/text/message_check.h"
#include "base/timestamp.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/spec/trial_result.h"
#include "experiment/state/experiment_state.h"
#include "experiment/state/warm_start.h"
#include "metrics/describe_source.h"

namespace shirabe::experiment {
namespace {

constexpr int64_t kLoadPage = 1000;  // trials in memory at once while loading

// What is kept of the trials that are not in a terminal phase.
Status LoadActive(db::Store& store, ExperimentData& data) {
  for (auto& [number, active] : data.active) {
    if (active.trial.record.attempts() == 0) continue;
    ASSIGN_OR_RETURN(active.checkpoints, store.ListCheckpoints({data.key, number}));
  }
  ASSIGN_OR_RETURN(auto attempts, store.ListAttempts({.experiment = data.key, .open_only = true}));
  for (db::Versioned<v1::Attempt>& attempt : attempts) {
    const auto found = data.active.find(attempt.record.trial());
    if (found == data.active.end()) continue;
    found->second.open = std::move(attempt);
    found->second.memory.Enter(AttemptPhase::kRecorded);
  }
  return absl::OkStatus();
}

template <class Add>
Status ReadTrials(db::Store& store, const ExperimentKey& key, const Add& add) {
  db::TrialQuery query{.experiment = key, .limit = kLoadPage};
  for (;;) {
    ASSIGN_OR_RETURN(auto page, store.ListTrials(query));
    for (db::Versioned<v1::Trial>& versioned : page) {
      query.after_number = versioned.record.number();
      add(versioned);
    }
    if (static_cast<int64_t>(page.size()) < kLoadPage) return absl::OkStatus();
  }
}

Status LoadTrials(db::Store& store, ExperimentData& data) {
  // The counts are made afresh, so that they cannot drift from the trials.
  v1::ExperimentStatus& status = *data.experiment.record.mutable_status();
  for (int phase = v1::TrialPhase_MIN; phase <= v1::TrialPhase_MAX; ++phase) {
    Recount(status, static_cast<v1::TrialPhase>(phase), 0);
  }
  status.set_trials(0);
  RETURN_IF_ERROR(ReadTrials(store, data.key, [&](db::Versioned<v1::Trial>& versioned) {
    data.history->Add(versioned.record);
    status.set_trials(versioned.record.number());
    Recount(status, versioned.record.phase(), 1);
    if (IsTerminal(versioned.record.phase())) return;
    data.active[versioned.record.number()].trial = std::move(versioned);
  }));
  return LoadActive(store, data);
}

// The algorithm and an empty history, for the space as the specification has it now.
Status LoadSearch(ExperimentData& data) {
  const v1::Experiment& experiment = data.experiment.record;
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  ASSIGN_OR_RETURN(AlgorithmSetup searcher, MakeAlgorithm(experiment));
  data.setup.algorithm = std::move(searcher.algorithm);
  data.setup.endpoint = std::move(searcher.endpoint);
  data.setup.seed = SeedOf(experiment);
  data.history.emplace(searcher.space, experiment.spec(), status.space_changes());
  data.history->SetMemo(status.memo());
  return absl::OkStatus();
}

// A decision that was due may have been lost with its process: every active trial is judged again.
Status LoadStopper(db::Store& store, ExperimentData& data) {
  const v1::ExperimentSpec& spec = data.experiment.record.spec();
  if (!spec.has_early_stopping()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      data.setup.stopper,
      suggestion::CreateStopper(spec.early_stopping().algorithm_name(), StopProblemOf(spec)));
  const auto objectives = ObjectiveMetrics(spec);
  for (int64_t number = 1; number <= data.history->history().size(); ++number) {
    for (size_t k = 0; k < objectives.size(); ++k) {
      ASSIGN_OR_RETURN(const auto rows, store.ListObservations({.trial = {data.key, number},
                                                                .metric = objectives[k].metric}));
      std::map<int64_t, double> losses;
      for (const db::StoredObservation& row : rows)
        losses[row.step] = LossOfType(objectives[k].type, row.value);
      data.history->MutableCurve(number, k) = suggestion::CurveOf(losses);
    }
  }
  for (auto& [number, active] : data.active) active.memory.judge = true;
  return absl::OkStatus();
}

Status LoadPrior(db::Store& store, ExperimentData& data) {
  v1::Experiment& experiment = data.experiment.record;
  if (!experiment.spec().shirabe().has_warm_start()) return absl::OkStatus();
  ASSIGN_OR_RETURN(WarmStart found,
                   ReadWarmStart(store, experiment, data.history->history().space()));
  v1::ShirabeStatus& known = *experiment.mutable_status()->mutable_shirabe();
  const auto count = static_cast<int64_t>(found.trials.size());
  if (!known.has_prior_trials() || known.prior_trials() != count ||
      known.prior_left_out() != found.left_out) {
    v1::Event event;
    event.set_namespace_(data.key.ns);
    event.set_experiment(data.key.name);
    event.set_warning(count == 0 || known.has_prior_trials());
    event.set_reason("WarmStarted");
    event.set_message(ToString(found));
    *event.mutable_time() = experiment.metadata().creation_timestamp();
    data.batch.events.push_back(std::move(event));
    known.set_prior_trials(count);
    known.set_prior_left_out(found.left_out);
    data.experiment_changed = true;
  }
  data.history->SetPrior(std::move(found.trials));
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<ExperimentState>> ExperimentState::Load(db::Store& store,
                                                                 const ExperimentKey& key,
                                                                 int64_t epoch) {
  ExperimentData data;
  data.key = key;
  data.epoch = epoch;
  data.batch.experiment = key;
  ASSIGN_OR_RETURN(data.experiment, store.GetExperiment(key));
  const v1::Experiment& experiment = data.experiment.record;
  RETURN_IF_ERROR(Prefix("experiment " + ToString(key), CheckEnums(experiment)));
  RETURN_IF_ERROR(LoadSearch(data));
  ASSIGN_OR_RETURN(data.setup.collector,
                   metrics::CreateCollector(experiment.spec().metrics_collector_spec()));
  RETURN_IF_ERROR(LoadTrials(store, data));
  RETURN_IF_ERROR(LoadStopper(store, data));
  RETURN_IF_ERROR(LoadPrior(store, data));
  std::unique_ptr<ExperimentState> state(new ExperimentState(std::move(data)));  // private
  return state;
}

Status ExperimentState::ReloadHistory(db::Store& store) {
  calls_.Drop();
  const SharedHistory before = *std::move(data_.history);
  RETURN_IF_ERROR(LoadSearch(data_));
  RETURN_IF_ERROR(ReadTrials(store, data_.key, [this](const db::Versioned<v1::Trial>& stored) {
    const auto active = data_.active.find(stored.record.number());  // newer than what is stored
    data_.history->Add(active == data_.active.end() ? stored.record : active->second.trial.record);
  }));
  data_.history->AdoptCurves(before);
  RETURN_IF_ERROR(LoadPrior(store, data_));
  data_.memory.ranges_changed = data_.memory.wait_for_change = false;
  data_.memory.regret_unknown.reset();
  data_.memory.algorithm = {};
  return absl::OkStatus();
}

}  // namespace shirabe::experiment
