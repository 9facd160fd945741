// Records made by hand, for tests of what is shown of them.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "base/timestamp.h"
#include "client/client.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe {

inline constexpr int64_t kStart = 1'700'000'000;  // 2023-11-14T22:13:20Z
inline absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(kStart + seconds); }

// Minimises loss over lr (double), bs (int) and opt (categorical), and records acc.
inline v1::Experiment MakeExperiment(const std::string& name = "digits") {
  v1::Experiment experiment;
  experiment.set_api_version("kubeflow.org/v1beta1");
  experiment.set_kind("Experiment");
  experiment.mutable_metadata()->set_name(name);
  experiment.mutable_metadata()->set_namespace_("default");
  *experiment.mutable_metadata()->mutable_creation_timestamp() = ToProto(At(0));
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  spec.mutable_objective()->set_type(v1::MINIMIZE);
  spec.mutable_objective()->set_objective_metric_name("loss");
  spec.mutable_objective()->add_additional_metric_names("acc");
  for (const auto& [metric, strategy] :
       {std::pair("loss", v1::MIN), std::pair("acc", v1::LATEST)}) {
    v1::MetricStrategy& one = *spec.mutable_objective()->add_metric_strategies();
    one.set_name(metric);
    one.set_value(strategy);
  }
  v1::ParameterSpec& lr = *spec.add_parameters();
  lr.set_name("lr");
  lr.set_parameter_type(v1::DOUBLE);
  lr.mutable_feasible_space()->set_min(1e-5);
  lr.mutable_feasible_space()->set_max(0.1);
  lr.mutable_feasible_space()->set_distribution(v1::LOG_UNIFORM);
  v1::ParameterSpec& bs = *spec.add_parameters();
  bs.set_name("bs");
  bs.set_parameter_type(v1::INT);
  bs.mutable_feasible_space()->set_min(1);
  bs.mutable_feasible_space()->set_max(64);
  v1::ParameterSpec& opt = *spec.add_parameters();
  opt.set_name("opt");
  opt.set_parameter_type(v1::CATEGORICAL);
  for (const char* word : {"sgd", "it's, \"adam\""}) opt.mutable_feasible_space()->add_list(word);
  spec.mutable_algorithm()->set_algorithm_name("random");
  spec.set_parallel_trial_count(2);
  spec.set_max_trial_count(32);
  return experiment;
}

struct TrialValues {
  double lr = 0.0031;
  int64_t bs = 32;
  std::string opt = "sgd";
};

inline void AddAssignments(const TrialValues& values,
                           google::protobuf::RepeatedPtrField<v1::Assignment>& out) {
  v1::Assignment& lr = *out.Add();
  lr.set_name("lr");
  lr.set_number(values.lr);
  v1::Assignment& bs = *out.Add();
  bs.set_name("bs");
  bs.set_integer(values.bs);
  v1::Assignment& opt = *out.Add();
  opt.set_name("opt");
  opt.set_category(values.opt);
}

inline v1::Metric MakeMetric(const std::string& name, double first, double last) {
  v1::Metric metric;
  metric.set_name(name);
  metric.set_min(std::min(first, last));
  metric.set_max(std::max(first, last));
  metric.set_latest(last);
  metric.set_min_step(first < last ? 1 : 2);
  metric.set_max_step(first < last ? 2 : 1);
  metric.set_latest_step(2);
  metric.set_count(2);
  return metric;
}

// Created at 10 s; with a loss it ran from 20 s to 80 s and has two values of each metric.
inline v1::Trial MakeTrial(int64_t number, v1::TrialPhase phase,
                           std::optional<double> loss = std::nullopt,
                           const TrialValues& values = {}) {
  v1::Trial trial;
  trial.set_namespace_("default");
  trial.set_experiment("digits");
  trial.set_number(number);
  trial.set_phase(phase);
  *trial.mutable_creation_time() = ToProto(At(10));
  AddAssignments(values, *trial.mutable_assignments());
  for (const double x : {0.5, 0.5, 0.0}) trial.mutable_point()->add_x(x);
  if (phase == v1::TRIAL_PENDING) return trial;
  *trial.mutable_start_time() = ToProto(At(20));
  trial.set_attempts(1);
  if (phase != v1::TRIAL_RUNNING) *trial.mutable_completion_time() = ToProto(At(80));
  if (!loss) return trial;
  *trial.mutable_observation()->add_metrics() = MakeMetric("loss", *loss + 1, *loss);
  *trial.mutable_observation()->add_metrics() = MakeMetric("acc", 0.5, 0.75);
  trial.set_last_step(2);
  if (phase == v1::TRIAL_RUNNING) return trial;
  trial.set_objective(*loss);
  trial.set_objective_step(2);
  return trial;
}

// Ran from 20 s to 60 s on a spot machine at 3.60 an hour (0.001 a second), and was preempted.
inline v1::Attempt MakeClosedAttempt(int64_t trial, int32_t number) {
  v1::Attempt attempt;
  attempt.set_namespace_("default");
  attempt.set_experiment("digits");
  attempt.set_trial(trial);
  attempt.set_number(number);
  attempt.set_token("secret");
  attempt.set_state(v1::ATTEMPT_CLOSED);
  attempt.set_cause(v1::PREEMPTED_SPOT);
  attempt.set_signal(9);
  *attempt.mutable_start_time() = ToProto(At(20));
  *attempt.mutable_end_time() = ToProto(At(60));
  attempt.set_resumed_from_step(5200);
  attempt.set_resumed_from_trial(trial);
  attempt.set_resumed_from_attempt(number - 1);
  attempt.set_steps_gained(30);
  attempt.set_steps_redone(20);
  attempt.set_seconds(39.5);
  attempt.set_cost(0.0395);
  v1::Placement& placement = *attempt.add_placements();
  placement.set_node("spot-1");
  placement.set_pool("a100-spot");
  placement.set_capacity("spot");
  placement.set_price_per_hour(3.6);
  placement.set_on_demand_price_per_hour(10.8);
  *placement.mutable_start_time() = ToProto(At(20));
  *placement.mutable_end_time() = ToProto(At(60));
  return attempt;
}

inline v1::Checkpoint MakeCheckpoint(int64_t trial, int32_t attempt, int64_t step) {
  v1::Checkpoint checkpoint;
  checkpoint.set_namespace_("default");
  checkpoint.set_experiment("digits");
  checkpoint.set_trial(trial);
  checkpoint.set_attempt(attempt);
  checkpoint.set_step(step);
  checkpoint.set_bytes(1536);
  checkpoint.set_digest("0123456789abcdef0123456789abcdef");
  *checkpoint.mutable_time() = ToProto(At(50));
  return checkpoint;
}

inline void SetBest(const v1::Trial& trial, v1::Experiment& experiment) {
  v1::OptimalTrial& best = *experiment.mutable_status()->mutable_current_optimal_trial();
  best.set_best_trial_name(TrialName({ExperimentKeyOf(trial), trial.number()}));
  best.set_number(trial.number());
  best.set_objective(trial.objective());
  best.set_step(trial.objective_step());
  *best.mutable_parameter_assignments() = trial.assignments();
  *best.mutable_observation() = trial.observation();
}

inline void SetCondition(const std::string& type, v1::Experiment& experiment) {
  v1::Condition& condition = *experiment.mutable_status()->add_conditions();
  condition.set_type(type);
  condition.set_status("True");
  condition.set_reason("Experiment" + type);
  condition.set_message("it is " + type);
  *condition.mutable_last_update_time() = ToProto(At(1));
  *condition.mutable_last_transition_time() = ToProto(At(1));
}

}  // namespace shirabe
