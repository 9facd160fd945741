#include "experiment/experiment_state.h"

#include <utility>

#include "base/text/message_check.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/cost_ledger.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/spec/objective_value.h"
#include "experiment/submission.h"
#include "metrics/describe_source.h"

namespace shirabe::experiment {
namespace {

constexpr int64_t kLoadPage = 1000;  // trials in memory at once while loading
constexpr int kTokenBytes = 16;

}  // namespace

std::vector<v1::Checkpoint> RecordsOf(const std::vector<db::Versioned<v1::Checkpoint>>& rows) {
  std::vector<v1::Checkpoint> records;
  for (const db::Versioned<v1::Checkpoint>& row : rows) records.push_back(row.record);
  return records;
}

bool IsTerminal(v1::TrialPhase phase) {
  return phase != v1::TRIAL_PENDING && phase != v1::TRIAL_RUNNING;
}

uint64_t SeedOf(const v1::Experiment& experiment) {
  for (const v1::Setting& setting : experiment.spec().algorithm().algorithm_settings()) {
    if (setting.name() != "random_state") continue;
    if (const auto seed = ParseNumber(setting.value())) return static_cast<uint64_t>(*seed);
  }
  if (experiment.spec().shirabe().has_seed()) {
    return static_cast<uint64_t>(experiment.spec().shirabe().seed());
  }
  return Fingerprint(ToString(KeyOf(experiment)));
}

suggestion::TrialSummary TrialSummaryOf(const v1::ObjectiveSpec& objective,
                                        const v1::Trial& trial) {
  suggestion::TrialSummary view;
  view.last_step = trial.last_step();
  view.parent = trial.parent().trial();
  view.early_stopped = trial.phase() == v1::TRIAL_EARLY_STOPPED;
  if (!IsTerminal(trial.phase())) return view;
  const bool usable = trial.phase() == v1::TRIAL_SUCCEEDED || view.early_stopped;
  view.state = suggestion::TrialState::kInfeasible;
  if (usable && trial.has_objective()) {
    view.state = suggestion::TrialState::kCompleted;
    view.loss = LossOf(objective, trial.objective());
  }
  return view;
}

State::State(const ExperimentKey& key, int64_t epoch) : key_(key), epoch_(epoch) {
  batch_.experiment = key;
}

State::~State() {
  if (ticket != nullptr) ticket->Cancel();
}

StatusOr<std::unique_ptr<State>> State::Load(db::Store& store, const ExperimentKey& key,
                                             int64_t epoch) {
  std::unique_ptr<State> state(new State(key, epoch));  // the constructor is private
  ASSIGN_OR_RETURN(state->experiment_, store.GetExperiment(key));
  RETURN_IF_ERROR(Prefix("experiment " + ToString(key), CheckEnums(state->experiment())));
  const v1::ExperimentSpec& spec = state->experiment().spec();
  ASSIGN_OR_RETURN(AlgorithmSetup searcher, MakeAlgorithm(state->experiment()));
  state->algorithm = std::move(searcher.algorithm);
  state->space_ = std::move(searcher.space);
  state->endpoint = std::move(searcher.endpoint);
  state->history_ =
      std::make_shared<suggestion::History>(*state->space_);  // shared: see the header
  state->curves_ = std::make_shared<suggestion::Curves>();    // shared: see the header
  state->history_->memo = state->experiment().status().shirabe().memo();
  state->seed = SeedOf(state->experiment());
  ASSIGN_OR_RETURN(state->collector, metrics::CreateCollector(spec.metrics_collector_spec()));
  RETURN_IF_ERROR(state->LoadTrials(store));
  RETURN_IF_ERROR(state->LoadStopper(store));
  RETURN_IF_ERROR(state->LoadPrior(store));
  return state;
}

Status State::LoadTrials(db::Store& store) {
  // The counts are made afresh, so that they cannot drift from the trials.
  v1::ExperimentStatus& status = *experiment_.record.mutable_status();
  for (int phase = v1::TrialPhase_MIN; phase <= v1::TrialPhase_MAX; ++phase) {
    Recount(static_cast<v1::TrialPhase>(phase), 0);
  }
  status.set_trials(0);
  db::TrialQuery query{.experiment = key_, .limit = kLoadPage};
  for (;;) {
    ASSIGN_OR_RETURN(auto page, store.ListTrials(query));
    for (db::Versioned<v1::Trial>& versioned : page) {
      query.after_number = versioned.record.number();
      Remember(versioned.record);
      if (IsTerminal(versioned.record.phase())) continue;
      live_[versioned.record.number()].trial = std::move(versioned);
    }
    if (static_cast<int64_t>(page.size()) < kLoadPage) break;
  }
  return LoadLive(store);
}

// What is kept of the trials that are not in a terminal phase.
Status State::LoadLive(db::Store& store) {
  for (auto& [number, live] : live_) {
    if (live.trial.record.attempts() == 0) continue;
    ASSIGN_OR_RETURN(live.checkpoints, store.ListCheckpoints({key_, number}));
  }
  ASSIGN_OR_RETURN(auto attempts, store.ListAttempts({.experiment = key_, .open_only = true}));
  for (db::Versioned<v1::Attempt>& attempt : attempts) {
    const auto live = live_.find(attempt.record.trial());
    if (live != live_.end()) live->second.open = std::move(attempt);
  }
  return absl::OkStatus();
}

// Numbers are dense from 1, so the history's index is the number less one.
void State::Remember(const v1::Trial& trial) {
  CHECK(trial.number() == history_->size() + 1);
  const auto& x = trial.point().x();
  history_->Add(suggestion::Point(x.begin(), x.end()),
                TrialSummaryOf(experiment().spec().objective(), trial));
  history_->SetLabels(trial.number() - 1, {trial.labels().begin(), trial.labels().end()});
  experiment_.record.mutable_status()->set_trials(trial.number());
  Recount(trial.phase(), 1);
}

v1::Experiment& State::mutable_experiment() {
  experiment_changed_ = true;
  return experiment_.record;
}

suggestion::History& State::MutableHistory() {
  if (history_.use_count() > 1)
    history_ = std::make_shared<suggestion::History>(*history_);  // shared
  return *history_;
}

suggestion::Curve& State::MutableCurve(int64_t trial) {
  if (curves_.use_count() > 1) curves_ = std::make_shared<suggestion::Curves>(*curves_);  // shared
  if (static_cast<int64_t>(curves_->size()) < trial) curves_->resize(trial);
  return (*curves_)[trial - 1];
}

void State::ReleaseAnswered() {
  if (ticket != nullptr && ticket->Wait(absl::ZeroDuration())) ticket->history = nullptr;
  if (recommend_ticket != nullptr && recommend_ticket->Wait(absl::ZeroDuration())) {
    recommend_ticket->history = nullptr;
  }
  if (stop_ticket != nullptr && stop_ticket->Wait(absl::ZeroDuration())) {
    stop_ticket->history = nullptr;
    stop_ticket->curves = nullptr;
  }
}

// Adds `by` to the count of trials in this phase; 0 clears it.
void State::Recount(v1::TrialPhase phase, int64_t by) {
  v1::ExperimentStatus& s = *experiment_.record.mutable_status();
  const auto next = [by](int64_t count) { return by == 0 ? 0 : count + by; };
  switch (phase) {
    case v1::TRIAL_RUNNING: return s.set_trials_running(next(s.trials_running()));
    case v1::TRIAL_SUCCEEDED: return s.set_trials_succeeded(next(s.trials_succeeded()));
    case v1::TRIAL_KILLED: return s.set_trials_killed(next(s.trials_killed()));
    case v1::TRIAL_FAILED: return s.set_trials_failed(next(s.trials_failed()));
    case v1::TRIAL_EARLY_STOPPED: return s.set_trials_early_stopped(next(s.trials_early_stopped()));
    case v1::TRIAL_METRICS_UNAVAILABLE:
      return s.set_trial_metrics_unavailable(next(s.trial_metrics_unavailable()));
    default: return s.set_trials_pending(next(s.trials_pending()));
  }
}

ActiveTrial& State::AddTrial(const suggestion::Suggestion& suggestion, absl::Time now) {
  v1::Trial trial;
  trial.set_namespace_(key_.ns);
  trial.set_experiment(key_.name);
  trial.set_number(history_->size() + 1);
  *trial.mutable_creation_time() = ToProto(now);
  const suggestion::Point point = space_->Canonical(suggestion.point);
  trial.mutable_point()->mutable_x()->Add(point.begin(), point.end());
  for (v1::Assignment& assignment : space_->Decode(point)) {
    *trial.add_assignments() = std::move(assignment);
  }
  if (suggestion.parent) *trial.mutable_parent() = *suggestion.parent;
  for (const auto& [name, value] : suggestion.labels) (*trial.mutable_labels())[name] = value;
  trial.set_explanation(suggestion.explanation);
  MutableHistory();
  Remember(trial);
  experiment_changed_ = true;
  ActiveTrial& live = live_[trial.number()];
  live.trial.record = std::move(trial);
  live.trial_changed = true;
  return live;
}

void State::SetPhase(ActiveTrial& live, v1::TrialPhase phase) {
  v1::Trial& trial = live.trial.record;
  CHECK(!IsTerminal(trial.phase()));  // I1: a terminal phase is reached once
  if (trial.phase() == phase) return;
  Recount(trial.phase(), -1);
  Recount(phase, 1);
  experiment_changed_ = true;
  trial.set_phase(phase);
  live.trial_changed = true;
  MutableHistory().Update(trial.number() - 1,
                          TrialSummaryOf(experiment().spec().objective(), trial));
  if (!IsTerminal(phase)) return;
  wait_for_change = false;
  ConsiderBest(trial);
}

// I5: only a finite objective counts, and only a better one replaces the best so far.
void State::ConsiderBest(const v1::Trial& trial) {
  const bool usable =
      trial.phase() == v1::TRIAL_SUCCEEDED || trial.phase() == v1::TRIAL_EARLY_STOPPED;
  if (!usable || !trial.has_objective()) return;
  const v1::ObjectiveSpec& objective = experiment().spec().objective();
  v1::OptimalTrial& best = *mutable_status().mutable_current_optimal_trial();
  if (best.has_objective() &&
      LossOf(objective, trial.objective()) >= LossOf(objective, best.objective())) {
    return;
  }
  best.set_best_trial_name(TrialName({key_, trial.number()}));
  best.set_number(trial.number());
  *best.mutable_parameter_assignments() = trial.assignments();
  *best.mutable_observation() = trial.observation();
  best.set_objective(trial.objective());
  best.set_step(trial.objective_step());
}

v1::Attempt& State::OpenAttempt(ActiveTrial& live, absl::Time now) {
  v1::Trial& trial = live.trial.record;
  CHECK(!live.open.has_value());  // I2: one attempt of a trial at a time
  trial.set_attempts(trial.attempts() + 1);
  trial.clear_not_before();
  trial.clear_waiting();
  live.trial_changed = true;
  live.started = live.stop_sent = live.stop_now = live.exited = live.judge = false;
  live.start_again = live.collect_at = live.ran_before = absl::ZeroDuration();
  live.running_since.reset();
  live.wait = {};
  live.told_at.reset();
  live.pushed.reset();
  live.told.reset();
  live.overdue = false;
  v1::Attempt& attempt = live.open.emplace().record;
  attempt.set_namespace_(key_.ns);
  attempt.set_experiment(key_.name);
  attempt.set_trial(trial.number());
  attempt.set_number(trial.attempts());
  attempt.set_token(RandomBytes(kTokenBytes));
  *attempt.mutable_creation_time() = ToProto(now);
  live.open_changed = true;
  return attempt;
}

void State::CloseAttempt(ActiveTrial& live) {
  CHECK(live.open.has_value());
  live.open->record.set_state(v1::ATTEMPT_CLOSED);
  Charge(live.open->record, live.trial.record, *mutable_status().mutable_shirabe());
  live.trial_changed = true;
  batch_.attempts.push_back({std::move(live.open->record), live.open->revision});
  live.open.reset();
  live.open_changed = false;
}

void State::PutCheckpoint(ActiveTrial& live, const v1::Checkpoint& checkpoint) {
  size_t i = 0;
  for (; i < live.checkpoints.size(); ++i) {
    const v1::Checkpoint& old = live.checkpoints[i].record;
    if (old.attempt() == checkpoint.attempt() && old.step() == checkpoint.step()) break;
  }
  if (i == live.checkpoints.size()) live.checkpoints.emplace_back();
  live.checkpoints[i].record = checkpoint;
  live.checkpoints_changed.insert(i);
}

void State::AddEvent(v1::Event event, absl::Time now) {
  event.set_namespace_(key_.ns);
  event.set_experiment(key_.name);
  *event.mutable_time() = ToProto(now);
  batch_.events.push_back(std::move(event));
}

bool State::Refuse(const AttemptKey& stray) {
  if (!refused_.insert(stray).second) return false;
  v1::ShirabeStatus& status = *mutable_status().mutable_shirabe();
  status.set_refused_writes(status.refused_writes() + 1);
  return true;
}

void State::SetMemo(const std::string& memo) {
  if (memo == history_->memo) return;
  MutableHistory().memo = memo;
  mutable_status().mutable_shirabe()->set_memo(memo);
}

bool State::Changed() const {
  if (experiment_changed_ || !batch_.attempts.empty() || !batch_.observations.empty() ||
      !batch_.events.empty() || !batch_.intents_done.empty() || batch_.delete_experiment) {
    return true;
  }
  for (const auto& [number, live] : live_) {
    if (live.trial_changed || live.open_changed || !live.checkpoints_changed.empty()) return true;
  }
  return false;
}

// Rows, checkpoints and ends come only with a change of their attempt. One that is new in this
// batch has no predecessor who could have lost it.
void State::AddFences() {
  for (const db::Write<v1::Attempt>& write : batch_.attempts) {
    if (write.expected == 0) continue;
    batch_.fences.push_back({.trial = write.record.trial(),
                             .attempt = write.record.number(),
                             .token = write.record.token()});
  }
}

Status State::Commit(db::Store& store) {
  batch_.epoch = epoch_;
  if (batch_.delete_experiment) return store.Commit(batch_).status();
  for (const auto& [number, live] : live_) {
    if (live.trial_changed) batch_.trials.push_back({live.trial.record, live.trial.revision});
    if (live.open_changed) batch_.attempts.push_back({live.open->record, live.open->revision});
    for (const size_t i : live.checkpoints_changed) {
      batch_.checkpoints.push_back({live.checkpoints[i].record, live.checkpoints[i].revision});
    }
  }
  AddFences();
  if (experiment_changed_) batch_.put = {experiment_.record, experiment_.revision};
  ASSIGN_OR_RETURN(const int64_t revision, store.Commit(batch_));
  if (experiment_changed_) experiment_.revision = revision;
  experiment_changed_ = false;
  for (auto it = live_.begin(); it != live_.end();) {
    ActiveTrial& live = it->second;
    if (live.trial_changed) live.trial.revision = revision;
    if (live.open_changed) live.open->revision = revision;
    for (const size_t i : live.checkpoints_changed) live.checkpoints[i].revision = revision;
    live.checkpoints_changed.clear();
    live.trial_changed = live.open_changed = false;
    it = IsTerminal(live.trial.record.phase()) ? live_.erase(it) : std::next(it);
  }
  batch_ = db::Batch{};
  batch_.experiment = key_;
  return absl::OkStatus();
}

}  // namespace shirabe::experiment
