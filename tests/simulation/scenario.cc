#include "tests/simulation/scenario.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_format.h"
#include "experiment/objective.h"
#include "experiment/spec.h"
#include "experiment/state.h"
#include "experiment/submit.h"
#include "trial/template.h"

namespace shirabe::simulation {
namespace {

constexpr int kFaultySteps = 250;
constexpr int kQuietSteps = 4000;

std::string PointText(const v1::Trial& trial) {
  std::string text;
  for (const v1::Assignment& assignment : trial.assignments()) {
    text += assignment.name() + "=" + trial::FormatAssignment(assignment) + " ";
  }
  return text;
}

void AddParameter(v1::ExperimentSpec& spec, v1::ParameterType type, double max) {
  v1::ParameterSpec* parameter = spec.add_parameters();
  parameter->set_name("p" + std::to_string(spec.parameters_size()));
  parameter->set_parameter_type(type);
  v1::FeasibleSpace& space = *parameter->mutable_feasible_space();
  if (type == v1::CATEGORICAL) {
    for (int i = 0; i <= max; ++i) space.add_list(std::string(1, static_cast<char>('a' + i)));
    return;
  }
  space.set_min(0);
  space.set_max(max);
}

}  // namespace

Scenario::Scenario(uint64_t seed)
    : seed_(seed),
      rng_(Mix(seed, 1)),
      world_(Mix(seed, 2), &clock_, Hazards{}),
      disk_(*db::Open("memory:")),
      store_(std::make_unique<FaultyStore>(disk_.get(), &rng_)) {
  SetCollectedWorld(&world_);
}

v1::Experiment Scenario::MakeExperiment() {
  Rng rng(Mix(seed_, 3));
  v1::Experiment experiment;
  experiment.set_api_version("kubeflow.org/v1beta1");
  experiment.set_kind("Experiment");
  experiment.mutable_metadata()->set_name(key_.name);
  experiment.mutable_metadata()->set_namespace_(key_.ns);
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  const char* algorithms[] = {"random", "sobol", "grid"};
  const std::string algorithm = algorithms[rng.Below(3)];
  spec.mutable_algorithm()->set_algorithm_name(algorithm);
  if (algorithm != "grid" && rng.Below(2) == 0) AddParameter(spec, v1::DOUBLE, 1);
  AddParameter(spec, v1::INT, static_cast<double>(rng.Below(6)));
  if (rng.Below(2) == 0) AddParameter(spec, v1::CATEGORICAL, 2);
  spec.mutable_objective()->set_type(v1::MINIMIZE);
  spec.mutable_objective()->set_objective_metric_name("loss");
  if (rng.Below(4) == 0) spec.mutable_objective()->set_goal(0.01);
  spec.set_parallel_trial_count(1 + static_cast<int>(rng.Below(6)));
  spec.set_max_trial_count(1 + static_cast<int>(rng.Below(20)));
  if (rng.Below(3) == 0) spec.set_max_failed_trial_count(static_cast<int>(rng.Below(4)));
  spec.mutable_shirabe()->mutable_attempts()->set_max_failures(static_cast<int>(rng.Below(3)));
  spec.mutable_shirabe()->mutable_attempts()->set_max_preemptions(static_cast<int>(rng.Below(5)));
  spec.mutable_metrics_collector_spec()->mutable_collector()->set_kind(v1::CUSTOM);
  spec.mutable_trial_template()->set_primary_container_name("c");
  auto& fields = *spec.mutable_trial_template()->mutable_trial_spec()->mutable_fields();
  fields["apiVersion"].set_string_value("batch/v1");
  fields["kind"].set_string_value("Job");
  experiment::SetDefaults(experiment);
  return experiment;
}

void Scenario::Boot() {
  const std::string holder = "sim:" + std::to_string(rng_.Next());
  db::LeaseRequest request{.experiment = key_,
                           .holder = holder,
                           .now = clock_.Now(),
                           .ttl = absl::Seconds(15),
                           .dead_epoch = epoch_};
  epoch_ = disk_->AcquireLease(request)->epoch();
  executor_ = std::make_unique<SimExecutor>(&world_);
  reconciler_ = std::make_unique<experiment::Reconciler>(
      experiment::ReconcilerOptions{.store = store_.get(),
                                    .executor = executor_.get(),
                                    .clock = &clock_,
                                    .proposer = &proposer_});
  reconciler_->Own(key_, epoch_);
  suspended_ = false;
  due_ = clock_.Monotonic();
}

std::string Scenario::Run() {
  const auto submitted = experiment::Submit(*disk_, clock_, MakeExperiment());
  if (!submitted.ok()) return "submit: " + submitted.status().ToString();
  most_parallel_ = MakeExperiment().spec().parallel_trial_count();
  Boot();
  quiet_ = !faults;
  if (quiet_) world_.hazards() = Hazards{0, 0, 0, 0, 0, 0, 0, 1000};
  const int steps = kFaultySteps + kQuietSteps;
  for (int step = 0; step < steps && !ended_; ++step) {
    if (faults && step == kFaultySteps) {  // I9: from here on it must come to an end by itself
      quiet_ = true;
      world_.hazards().start_fault = 0;
      store_->refuse = store_->forget = store_->unreadable = 0;
      if (suspended_) Boot();
      v1::Intent resume;
      resume.set_verb(v1::Intent::RESUME);
      if (!experiment::Send(*disk_, clock_, key_, resume).ok()) return "cannot send an intent";
    }
    if (std::string broken = Step(); !broken.empty()) {
      return absl::StrFormat("step %d: %s", step, broken);
    }
  }
  if (!ended_) return "I9: it did not come to an end after the faults had stopped\n" + Describe();
  return CheckEnd();
}

// ---- one step ----------------------------------------------------------------------------------

std::string Scenario::Step() {
  if (!quiet_) Disturb();
  Sleep(absl::Seconds(20));
  const auto result = reconciler_->Reconcile(key_);
  if (absl::IsFailedPrecondition(result.status())) {
    return "the owner was told that it is none: " + result.status().ToString();
  }
  if (result.ok()) {
    due_ = clock_.Monotonic() + result->requeue_after;
    ended_ = result->ended && (quiet_ || rng_.Below(3) == 0);
    if (suspended_ && result->idle && !ended_) Boot();
  } else {
    due_ = clock_.Monotonic() + absl::Milliseconds(50);
  }
  if (std::string broken = CheckZombie(); !broken.empty()) return broken;
  return CheckInvariants();
}

// Goes on to when the reconciler wants to be called or a program ends, whichever comes first.
void Scenario::Sleep(absl::Duration most) {
  const absl::Duration now = clock_.Monotonic();
  absl::Duration until = std::min({due_, world_.NextEnd(), now + most});
  if (!quiet_ && rng_.Below(4) == 0) until = now;  // called for nothing
  clock_.Advance(std::max(until - now, absl::Milliseconds(1)));
}

void Scenario::Disturb() {
  switch (rng_.Below(24)) {
    case 0: Boot(); break;  // kill -9 of the controller between two steps
    case 1:                 // it only seems dead: both go on
      zombie_ = std::move(reconciler_);
      zombie_executor_ = std::move(executor_);
      Boot();
      break;
    case 2: store_->refuse = rng_.Below(2) == 0 ? 0 : 0.3; break;
    case 3: store_->forget = rng_.Below(2) == 0 ? 0 : 0.3; break;
    case 4: store_->unreadable = rng_.Below(2) == 0 ? 0 : 0.1; break;
    case 5: world_.hazards().start_fault = rng_.Below(2) == 0 ? 0 : 0.3; break;
    case 6: clock_.StepWallClock(absl::Minutes(static_cast<int64_t>(rng_.Below(120)) - 60)); break;
    case 7:
      suspended_ = true;
      reconciler_->Suspend(key_, rng_.Below(2) == 0);
      break;
    case 8: world_.hazards().slots = rng_.Below(2) == 0 ? 1000 : 2; break;
    case 9: SendIntent(); break;
    default: break;
  }
}

void Scenario::SendIntent() {
  v1::Intent intent;
  switch (rng_.Below(4)) {
    case 0: intent.set_verb(v1::Intent::PAUSE); break;
    case 1: intent.set_verb(v1::Intent::RESUME); break;
    default:
      intent.set_verb(v1::Intent::SCALE);
      intent.set_parallel_trial_count(1 + static_cast<int>(rng_.Below(8)));
      most_parallel_ = std::max(most_parallel_, intent.parallel_trial_count());
  }
  experiment::Send(*disk_, clock_, key_, intent).IgnoreError();
}

// F4: whatever the old owner writes is refused, and it is told so.
std::string Scenario::CheckZombie() {
  if (zombie_ == nullptr || rng_.Below(2) == 0) return "";
  const int64_t before = *disk_->Revision();
  const auto result = zombie_->Reconcile(key_);
  if (*disk_->Revision() != before) return "a process without the lease wrote something";
  if (!result.ok() && absl::IsFailedPrecondition(result.status())) zombie_ = nullptr;
  return "";
}

// ---- invariants --------------------------------------------------------------------------------

std::string Scenario::CheckInvariants() {
  const auto trials = disk_->ListTrials({.experiment = key_});
  const v1::Experiment experiment = Experiment();
  int open = 0;
  const auto attempts = disk_->ListAttempts({.experiment = key_, .open_only = true});
  for (const auto& attempt : *attempts) {
    ++open;
    if (terminal_.contains(attempt.record.trial())) return "I2: an open attempt of an ended trial";
  }
  if (open > most_parallel_)
    return absl::StrFormat("%d open attempts, %d allowed", open, most_parallel_);
  int64_t number = 0;
  for (const auto& trial : *trials) {
    if (trial.record.number() != ++number) return "I3: a trial is missing";
    if (std::string broken = CheckTrial(trial.record); !broken.empty()) return broken;
  }
  if (number > experiment.spec().max_trial_count()) return "more trials than maxTrialCount";
  const v1::OptimalTrial& best = experiment.status().current_optimal_trial();
  if (best_ && !best.has_objective()) return "I5: the best trial was forgotten";
  if (best.has_objective()) {
    if (!std::isfinite(best.objective())) return "I5: the best objective is not finite";
    if (best_ && best.objective() > *best_) return "I5: the best objective went backwards";
    best_ = best.objective();
  }
  return "";
}

std::string Scenario::CheckTrial(const v1::Trial& trial) {
  const std::string name = "trial " + std::to_string(trial.number());
  const auto [known, fresh] = points_.emplace(trial.number(), PointText(trial));
  if (!fresh && known->second != PointText(trial)) return "I3: " + name + " changed its point";
  const auto terminal = terminal_.find(trial.number());
  if (terminal != terminal_.end() && terminal->second != trial.phase()) {
    return "I1: " + name + " left its terminal phase";
  }
  if (experiment::IsTerminal(trial.phase())) terminal_[trial.number()] = trial.phase();
  if (world_.RunningOf({key_, trial.number()}) > 1) return "I2: two programs run " + name;
  return "";
}

// What the last attempt that ran reported is in the store, every point once, and nothing else
// counts.
std::string Scenario::CheckRows(const v1::Trial& trial) {
  int32_t ran = trial.attempts();
  while (ran > 1 && world_.Find({{key_, trial.number()}, ran}) == nullptr) --ran;
  std::set<std::tuple<int32_t, int64_t, std::string>> keys;
  uint64_t counted = 0;
  const auto rows =
      disk_->ListObservations({.trial = {key_, trial.number()}, .include_superseded = true});
  for (const auto& row : *rows) {
    if (!keys.insert({row.attempt, row.step, row.metric}).second) return "I4: a row stands twice";
    const Program* program = world_.Find({{key_, trial.number()}, row.attempt});
    if (program == nullptr) return "I4: a row of an attempt that never ran";
    const double value = program->points[row.step - 1].value;
    if (row.value != value && !(std::isnan(row.value) && std::isnan(value))) {
      return "I4: a row has another value than was reported";
    }
    if (row.superseded && row.attempt == ran) return "the last attempt is superseded";
    if (!row.superseded) ++counted;
  }
  const Program* last = world_.Find({{key_, trial.number()}, ran});
  const uint64_t reported = last == nullptr ? 0 : world_.Reported(*last);
  if (counted != reported) {
    return absl::StrFormat("I4: trial %d reported %d points, %d count", trial.number(), reported,
                           counted);
  }
  return "";
}

std::string Scenario::CheckEnd() {
  const v1::Experiment experiment = Experiment();
  if (!experiment::IsEnded(experiment)) return "it stopped without an end";
  if (world_.RunningCount() > 0) return "I8: a program was left running";
  std::map<v1::TrialPhase, int64_t> counts;
  std::optional<double> best;
  std::set<std::string> points;
  const auto trials = disk_->ListTrials({.experiment = key_});
  for (const auto& trial : *trials) {
    const v1::Trial& record = trial.record;
    if (!experiment::IsTerminal(record.phase())) return "I1: a trial never ended";
    ++counts[record.phase()];
    if (!points.insert(PointText(record)).second) return "I3: a point was tried twice";
    if (std::string broken = CheckRows(record); !broken.empty()) return broken;
    const auto attempts = disk_->ListAttempts({.experiment = key_, .trial = record.number()});
    if (static_cast<int>(attempts->size()) != record.attempts()) return "an attempt is missing";
    for (const auto& attempt : *attempts) {
      if (attempt.record.state() != v1::ATTEMPT_CLOSED) return "an attempt was never closed";
      if (attempt.record.cause() == v1::CAUSE_NONE) return "an attempt has no cause";
    }
    if (record.phase() != v1::TRIAL_SUCCEEDED || !record.has_objective()) continue;
    best = std::min(best.value_or(record.objective()), record.objective());
  }
  const v1::ExperimentStatus& status = experiment.status();
  if (status.trials_succeeded() != counts[v1::TRIAL_SUCCEEDED] ||
      status.trials_failed() != counts[v1::TRIAL_FAILED] ||
      status.trials_killed() != counts[v1::TRIAL_KILLED] ||
      status.trial_metrics_unavailable() != counts[v1::TRIAL_METRICS_UNAVAILABLE] ||
      status.trials_running() != 0 || status.trials_pending() != 0) {
    return "the counts of the status are not those of the trials";
  }
  if (best.has_value() != status.current_optimal_trial().has_objective() ||
      (best && *best != status.current_optimal_trial().objective())) {
    return "I5: the best trial is not the best of the trials";
  }
  return "";
}

std::string Scenario::Describe() {
  std::string text = Experiment().status().ShortDebugString() + "\n";
  const auto trials = disk_->ListTrials({.experiment = key_, .live_only = true});
  for (const auto& trial : *trials) text += trial.record.ShortDebugString() + "\n";
  const auto attempts = disk_->ListAttempts({.experiment = key_, .open_only = true});
  for (const auto& attempt : *attempts) text += attempt.record.ShortDebugString() + "\n";
  return text;
}

v1::Experiment Scenario::Experiment() { return disk_->GetExperiment(key_)->record; }

std::vector<std::string> Scenario::Points() {
  std::vector<std::string> points;
  for (const auto& [number, text] : points_) points.push_back(text);
  return points;
}

}  // namespace shirabe::simulation
