#include "tests/simulation/draw.h"

#include <string>

#include "experiment/spec/parse_spec.h"

namespace shirabe::simulation {
namespace {

// Streams of a seed.
enum Stream : uint64_t {
  kExperiment = 3,
  kPools,
  kHazards,
  kTraining,
  kMoney,
  kStopping,
  kAdaptive,
  kObjective,
  kForks,
  kHabits,
  kWishes,
  kWords
};

constexpr int kUnlimited = 1'000'000;
constexpr char kResource[] = "epochs";
constexpr char kForking[] = "forking";  // see forking.cc

bool Chance(Rng& rng, double probability) { return rng.Uniform() < probability; }

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

void DrawSpace(v1::ExperimentSpec& spec, Rng& rng) {
  const char* algorithms[] = {"random", "sobol", "grid"};
  const std::string algorithm = algorithms[rng.Below(3)];
  spec.mutable_algorithm()->set_algorithm_name(algorithm);
  if (algorithm != "grid" && rng.Below(2) == 0) AddParameter(spec, v1::DOUBLE, 1);
  AddParameter(spec, v1::INT, static_cast<double>(rng.Below(6)));
  if (rng.Below(2) == 0) AddParameter(spec, v1::CATEGORICAL, 2);
}

void Set(v1::ExperimentSpec& spec, const std::string& name, const std::string& value) {
  v1::Setting& setting = *spec.mutable_algorithm()->add_algorithm_settings();
  setting.set_name(name);
  setting.set_value(value);
}

void AddResource(v1::ExperimentSpec& spec, int max, int step) {
  AddParameter(spec, v1::INT, max);
  v1::ParameterSpec& parameter = *spec.mutable_parameters()->rbegin();
  parameter.set_name(kResource);
  parameter.mutable_feasible_space()->set_min(step);
  parameter.mutable_feasible_space()->set_step(step);
}

void DrawHalving(v1::ExperimentSpec& spec, Rng& rng) {
  const int eta = 2 + static_cast<int>(rng.Below(2));
  const int most = eta * eta * (1 + static_cast<int>(rng.Below(2)));
  Set(spec, "eta", std::to_string(eta));
  Set(spec, "r_l", std::to_string(most));
  Set(spec, "resource_name", kResource);
  AddResource(spec, most, 1);
}

void DrawPopulation(v1::ExperimentSpec& spec, Rng& rng) {
  Set(spec, "n_population", std::to_string(2 + rng.Below(4)));
  Set(spec, "truncation_threshold", Chance(rng, 0.5) ? "0.5" : "0.25");
  if (Chance(rng, 0.5)) Set(spec, "resample_probability", "0.3");
  if (Chance(rng, 0.5)) return;  // the program knows how far to go
  Set(spec, "resource_name", kResource);
  AddResource(spec, 12, 3);
}

// In place of the space of the seed.
void DrawAdaptive(v1::ExperimentSpec& spec, Rng& rng, bool forks) {
  constexpr const char* kAlgorithms[] = {"hyperband", "asha", "bohb", "pbt", "pbt", "gp", "tpe"};
  const std::string drawn = kAlgorithms[rng.Below(7)];
  const std::string algorithm = forks ? kForking : drawn;
  spec.clear_parameters();
  AddParameter(spec, v1::DOUBLE, 1);
  if (Chance(rng, 0.5)) AddParameter(spec, v1::CATEGORICAL, 2);
  spec.mutable_algorithm()->set_algorithm_name(algorithm);
  if (algorithm == "pbt") {
    DrawPopulation(spec, rng);
  } else if (algorithm != "gp" && algorithm != "tpe" && !forks) {
    DrawHalving(spec, rng);
  }
  spec.set_max_trial_count(spec.max_trial_count() + 10);
  // The last value does not depend on where a trial began.
  v1::MetricStrategy& strategy = *spec.mutable_objective()->add_metric_strategies();
  strategy.set_name("loss");
  strategy.set_value(v1::LATEST);
}

void DrawPolicy(v1::ShirabeSpec& spec, Rng& rng, Faults faults) {
  v1::AttemptPolicy& attempts = *spec.mutable_attempts();
  attempts.set_max_failures(static_cast<int>(rng.Below(3)));
  attempts.set_max_preemptions(Chance(rng, 0.5) ? static_cast<int>(rng.Below(5)) : 100);
  if (Chance(rng, 0.5)) attempts.set_on_demand_after(static_cast<int>(rng.Below(4)));
  if (Chance(rng, 0.5)) attempts.set_grace_period_seconds(static_cast<double>(rng.Below(20)));
  v1::CheckpointKeep& keep = *spec.mutable_checkpoint()->mutable_keep();
  if (Chance(rng, 0.5)) keep.set_best(static_cast<int>(rng.Below(3)));
  if (Chance(rng, 0.5)) keep.set_latest(1 + static_cast<int>(rng.Below(3)));
  // Only what is not said of the platform may end a trial.
  if (faults != Faults::kAll) attempts.set_max_preemptions(kUnlimited);
}

void DrawMoney(v1::ShirabeSpec& spec, Rng& rng, const v1::NodePools& pools) {
  if (pools.pools().empty()) return;
  bool spot = false, on_demand = false;
  for (const v1::NodePool& pool : pools.pools()) {
    (pool.capacity() == v1::SPOT ? spot : on_demand) = true;
  }
  if (spot && Chance(rng, 0.2)) spec.mutable_capacity()->set_spot(v1::REQUIRED);
  if (on_demand && Chance(rng, 0.2)) spec.mutable_capacity()->set_spot(v1::SPOT_NEVER);
  if (Chance(rng, 0.3)) spec.mutable_budget()->set_max_cost(rng.Uniform() * rng.Uniform());
}

// Rules that decide soon, so that their stops meet everything else that may end an attempt.
void DrawStopping(v1::ExperimentSpec& spec, Rng& rng) {
  if (Chance(rng, 0.4)) return;
  constexpr const char* kRules[][2] = {{"medianstop", "start_step"},
                                       {"percentile", "start_step"},
                                       {"asha-stop", "min_resource"},
                                       {"patience", "patience"},
                                       {"threshold", "start_step"}};
  const auto [name, setting] = kRules[rng.Below(5)];
  v1::EarlyStoppingSpec& stopping = *spec.mutable_early_stopping();
  stopping.set_algorithm_name(name);
  v1::Setting& number = *stopping.add_algorithm_settings();
  number.set_name(setting);
  number.set_value(std::to_string(1 + rng.Below(4)));
}

}  // namespace

bool IsAdaptive(uint64_t seed) { return Rng(Mix(seed, kAdaptive)).Below(3) == 0; }

bool Maximises(uint64_t seed) { return Rng(Mix(seed, kObjective)).Below(2) == 0; }

v1::Experiment DrawExperiment(uint64_t seed, const ExperimentKey& key, Faults faults,
                              bool mirrored) {
  Rng rng(Mix(seed, kExperiment));
  v1::Experiment experiment;
  experiment.set_api_version("kubeflow.org/v1beta1");
  experiment.set_kind("Experiment");
  experiment.mutable_metadata()->set_name(key.name);
  experiment.mutable_metadata()->set_namespace_(key.ns);
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  DrawSpace(spec, rng);
  const bool maximise = Maximises(seed) != mirrored;
  spec.mutable_objective()->set_type(maximise ? v1::MAXIMIZE : v1::MINIMIZE);
  spec.mutable_objective()->set_objective_metric_name("loss");
  const bool goal = rng.Below(4) == 0;
  if (goal && faults == Faults::kAll) spec.mutable_objective()->set_goal(maximise ? -0.01 : 0.01);
  spec.set_parallel_trial_count(1 + static_cast<int>(rng.Below(6)));
  spec.set_max_trial_count(1 + static_cast<int>(rng.Below(20)));
  if (IsAdaptive(seed)) {
    Rng adaptive(Mix(seed + 1, kAdaptive));
    DrawAdaptive(spec, adaptive, Rng(Mix(seed, kForks)).Below(5) == 0);
    if (faults != Faults::kAll) spec.set_parallel_trial_count(1);
  }
  const bool limited = rng.Below(3) == 0;
  if (limited) spec.set_max_failed_trial_count(static_cast<int>(rng.Below(4)));
  DrawPolicy(*spec.mutable_shirabe(), rng, faults);
  Rng money(Mix(seed, kMoney));
  if (faults == Faults::kAll) DrawMoney(*spec.mutable_shirabe(), money, DrawPools(seed));
  Rng stopping(Mix(seed, kStopping));
  if (faults == Faults::kAll) DrawStopping(spec, stopping);
  constexpr v1::ResumePolicy kPolicies[] = {v1::NEVER, v1::LONG_RUNNING, v1::FROM_VOLUME};
  spec.set_resume_policy(kPolicies[seed % 3]);
  spec.mutable_metrics_collector_spec()->mutable_collector()->set_kind(v1::CUSTOM);
  spec.mutable_trial_template()->set_primary_container_name("c");
  auto& fields = *spec.mutable_trial_template()->mutable_trial_spec()->mutable_fields();
  fields["apiVersion"].set_string_value("batch/v1");
  fields["kind"].set_string_value("Job");
  experiment::SetDefaults(experiment);
  return experiment;
}

v1::NodePools DrawPools(uint64_t seed) {
  Rng rng(Mix(seed, kPools));
  constexpr int kNotices[] = {0, 2, 15, 120};
  v1::NodePools pools;
  const int count = static_cast<int>(rng.Below(4));
  for (int i = 0; i < count; ++i) {
    v1::NodePool& pool = *pools.add_pools();
    pool.set_name("pool" + std::to_string(i));
    pool.set_capacity(Chance(rng, 0.6) ? v1::SPOT : v1::ON_DEMAND);
    pool.set_price_per_hour(rng.Uniform() * 10);
    pool.set_slots(1 + static_cast<int>(rng.Below(6)));
    pool.mutable_reclaim()->set_notice_seconds(kNotices[rng.Below(4)]);
    pool.mutable_reclaim()->set_returns_after_seconds(static_cast<double>(rng.Below(30)));
  }
  return pools;
}

Hazards DrawHazards(uint64_t seed, Faults faults) {
  Hazards hazards;
  if (faults == Faults::kNone) return hazards;
  Rng rng(Mix(seed, kHazards));
  hazards.reclaim = 0.9 * rng.Uniform();
  hazards.zombie = 0.3 * rng.Uniform();
  hazards.close_call = 0.2 * rng.Uniform();
  hazards.partition = 0.1 * rng.Uniform();
  hazards.loss = 0.1 * rng.Uniform();
  hazards.kill = 0.1 * rng.Uniform();
  hazards.damage = Chance(rng, 0.5) ? 0.3 * rng.Uniform() : 0;
  hazards.refusal = Chance(rng, 0.3) ? 0.3 * rng.Uniform() : 0;
  hazards.slow_verify = 0.5 * rng.Uniform();
  hazards.forget = 0.02 * rng.Uniform();
  hazards.slow_word = Rng(Mix(seed, kWords)).Uniform();
  hazards.infrastructure = Rng(Mix(seed, kHabits)).Below(4) == 0 ? 0.5 : 0;
  if (faults == Faults::kPreemption) return hazards;
  hazards.failure = 0.2 * rng.Uniform();
  hazards.yield = 0.1 * rng.Uniform();
  return hazards;
}

namespace {

// The whole number that it was given as its resource; 0 where there is none.
int64_t ResourceOf(const v1::Trial& trial) {
  for (const v1::Assignment& assignment : trial.assignments()) {
    if (assignment.name() == kResource) return assignment.integer();
  }
  return 0;
}

}  // namespace

Wishes DrawWishes(uint64_t seed, Faults faults) {
  Wishes wishes;
  if (faults != Faults::kAll) return wishes;
  Rng rng(Mix(seed, kWishes));
  const int at = 5 + static_cast<int>(rng.Below(60));
  switch (rng.Below(12)) {
    case 0: wishes.delete_at = at; break;
    case 1:
      wishes.stop_at = at;
      wishes.cancel_at = at + 1 + static_cast<int>(rng.Below(4));
      break;
    case 2: wishes.cancel_at = at; break;
    case 3: wishes.more_trials = 0; break;
    case 4:
    case 5: wishes.more_trials = 1 + static_cast<int>(rng.Below(5)); break;
    default: break;
  }
  return wishes;
}

Training DrawTraining(uint64_t seed, const v1::Trial& trial, int64_t parent_steps, Faults faults) {
  Rng rng(Mix(Mix(seed, kTraining), static_cast<uint64_t>(trial.number())));
  constexpr int kExits[] = {75, 0, 137, 143};
  Training training;
  training.seed = rng.Next();
  training.steps = 1 + static_cast<int64_t>(rng.Below(20));
  training.startup = absl::Seconds(rng.Uniform());
  training.step = absl::Seconds(0.1 + 3 * rng.Uniform());
  training.save = absl::Seconds(3 * rng.Uniform() * rng.Uniform());
  training.save_every = static_cast<int64_t>(rng.Below(5));
  training.on_notice = static_cast<Training::OnNotice>(rng.Below(3));
  training.notice_exit = kExits[rng.Below(4)];
  training.says_done = Chance(rng, 0.7);
  Rng habits(Mix(Mix(seed, kHabits), static_cast<uint64_t>(trial.number())));
  training.repeats = Chance(habits, 0.2);
  training.resaves = Chance(habits, 0.3);
  if (Chance(habits, 0.3)) training.placed_after = absl::Seconds(30 * habits.Uniform());
  const double odd = rng.Uniform();
  if (parent_steps > 0) training.steps = parent_steps + 1 + training.steps / 4;
  if (const int64_t resource = ResourceOf(trial); resource > 0) training.steps = resource;
  if (faults != Faults::kAll) return training;
  training.nan = odd < 0.05;
  training.silent = odd > 0.97;
  // A child goes on counting where its parent was, so all of them count, or none does.
  training.implicit = IsAdaptive(seed) ? seed % 7 == 0 : odd > 0.5 && odd < 0.6;
  training.repeats = training.repeats && !training.implicit;  // they would be steps of their own
  return training;
}

}  // namespace shirabe::simulation
