// Requests as Katib's controller makes them, and a server for them inside the test.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/katib/v1beta1/api.grpc.pb.h"

namespace shirabe::service {

namespace katib = ::api::v1::beta1;

using Settings = std::vector<std::pair<std::string, std::string>>;

// One service, reached without a port.
class InProcess {
 public:
  explicit InProcess(std::unique_ptr<grpc::Service> service) : service_(std::move(service)) {
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
  }
  ~InProcess() { server_->Shutdown(); }
  std::shared_ptr<grpc::Channel> channel() {  // shared: as gRPC has it
    return server_->InProcessChannel({});
  }

 private:
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

struct Range {
  std::string min, max, step = "";
};

inline void AddRange(katib::Experiment& experiment, const std::string& name,
                     katib::ParameterType type, const Range& range) {
  auto& parameter = *experiment.mutable_spec()->mutable_parameter_specs()->add_parameters();
  parameter.set_name(name);
  parameter.set_parameter_type(type);
  parameter.mutable_feasible_space()->set_min(range.min);
  parameter.mutable_feasible_space()->set_max(range.max);
  parameter.mutable_feasible_space()->set_step(range.step);
}

inline void AddList(katib::Experiment& experiment, const std::string& name,
                    katib::ParameterType type, const std::vector<std::string>& list) {
  auto& parameter = *experiment.mutable_spec()->mutable_parameter_specs()->add_parameters();
  parameter.set_name(name);
  parameter.set_parameter_type(type);
  for (const std::string& text : list) parameter.mutable_feasible_space()->add_list(text);
}

inline katib::Experiment Bare(const std::string& algorithm, const Settings& settings = {}) {
  katib::Experiment experiment;
  experiment.set_name("exp");
  auto& objective = *experiment.mutable_spec()->mutable_objective();
  objective.set_type(katib::MINIMIZE);
  objective.set_objective_metric_name("loss");
  experiment.mutable_spec()->mutable_algorithm()->set_algorithm_name(algorithm);
  for (const auto& [name, value] : settings) {
    auto& setting = *experiment.mutable_spec()->mutable_algorithm()->add_algorithm_settings();
    setting.set_name(name);
    setting.set_value(value);
  }
  experiment.mutable_spec()->set_parallel_trial_count(2);
  experiment.mutable_spec()->set_max_trial_count(20);
  return experiment;
}

// All four types; finite for a grid, and with a resource for what trains in rungs.
inline katib::Experiment Mixed(const std::string& algorithm, const Settings& settings = {}) {
  katib::Experiment experiment = Bare(algorithm, settings);
  const bool grid = algorithm == "grid";
  AddRange(experiment, "lr", katib::DOUBLE, {"0.1", "0.9", grid ? "0.1" : ""});
  AddRange(experiment, "units", katib::INT, {"1", "9"});
  AddList(experiment, "batch", katib::DISCRETE, {"16", "32.0", "6.40e1"});
  AddList(experiment, "opt", katib::CATEGORICAL, {"sgd", "adam"});
  return experiment;
}

// Settings without which an algorithm refuses every experiment.
inline Settings Needed(const std::string& algorithm) {
  const bool rungs = algorithm == "hyperband" || algorithm == "asha" || algorithm == "bohb";
  if (rungs) return {{"resource_name", "units"}, {"r_l", "9"}, {"eta", "3"}};
  if (algorithm == "pbt") {
    return {{"suggestion_trial_dir", "/tmp"},
            {"n_population", "5"},
            {"truncation_threshold", "0.4"},
            {"resource_name", "units"}};
  }
  return {};
}

using Point = katib::GetSuggestionsReply::ParameterAssignments;

inline katib::Trial TrialOf(const std::string& name, const Point& point) {
  katib::Trial trial;
  trial.set_name(name);
  *trial.mutable_spec()->mutable_parameter_assignments()->mutable_assignments() =
      point.assignments();
  *trial.mutable_spec()->mutable_labels() = point.labels();
  trial.mutable_status()->set_condition(katib::TrialStatus::RUNNING);
  return trial;
}

inline void End(katib::Trial& trial, katib::TrialStatus::TrialConditionType condition,
                const std::string& value) {
  trial.mutable_status()->set_condition(condition);
  auto& metric = *trial.mutable_status()->mutable_observation()->add_metrics();
  metric.set_name("loss");
  metric.set_value(value);
}

inline std::string ValueOf(const Point& point, const std::string& name) {
  for (const auto& assignment : point.assignments()) {
    if (assignment.name() == name) return assignment.value();
  }
  ADD_FAILURE() << "no parameter " << name;
  return "";
}

inline std::string TextOf(const Point& point) {
  std::string text;
  for (const auto& assignment : point.assignments()) {
    text += assignment.name() + "=" + assignment.value() + " ";
  }
  return text;
}

struct Answered {
  grpc::Status status;
  katib::GetSuggestionsReply reply;
  std::string outcome, reason, left_out;
};

inline Answered Ask(katib::Suggestion::Stub& stub, const katib::GetSuggestionsRequest& request) {
  Answered answered;
  grpc::ClientContext context;
  answered.status = stub.GetSuggestions(&context, request, &answered.reply);
  const auto tell = [&context](const char* key) {
    const auto& all = context.GetServerTrailingMetadata();
    const auto found = all.find(key);
    return found == all.end() ? "" : std::string(found->second.data(), found->second.size());
  };
  answered.outcome = tell("shirabe-outcome");
  answered.reason = tell("shirabe-reason");
  answered.left_out = tell("shirabe-left-out");
  return answered;
}

}  // namespace shirabe::service
