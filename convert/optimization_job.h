// The OptimizationJob of Kubeflow's Trainer (trainer.kubeflow.org/v1alpha1), which is a search
// whose trials are TrainJobs: what its reader, its writer and the controller call its parts.
//
// A trial has the value of a parameter in the environment of its program, as
// KUBEFLOW_TRAINER_OPT_<name>, as Trainer's controller has it, and with the name in upper case, as
// Trainer's proposal has it. What the schema has no place for stands in annotations of the object,
// which Shirabe alone reads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "convert/conversion.h"
#include "google/protobuf/struct.pb.h"

namespace shirabe::convert {

inline constexpr char kOptimizationJob[] = "OptimizationJob";
inline constexpr char kTrainerGroup[] = "trainer.kubeflow.org";
inline constexpr char kTrainerVersion[] = "trainer.kubeflow.org/v1alpha1";

// With this value the object is run by `shirabe controller`.
inline constexpr char kJobManagedBy[] = "shirabe.dev/managed-by";
inline constexpr char kJobManager[] = "shirabe";
inline constexpr char kJobAlgorithm[] = "shirabe.dev/algorithm";
inline constexpr char kJobAlgorithmSettings[] = "shirabe.dev/algorithm-settings";  // a=1, b=2
inline constexpr char kJobTrials[] = "shirabe.dev/num-trials";
inline constexpr char kJobFailures[] = "shirabe.dev/max-failed-trials";
inline constexpr char kJobStopping[] = "shirabe.dev/early-stopping";
inline constexpr char kJobStoppingSettings[] = "shirabe.dev/early-stopping-settings";
// Of a trial's TrainJob: all its parameters, as a JSON object of texts.
inline constexpr char kTrialAssignment[] = "shirabe.dev/parameters";

// What its schema allows.
inline constexpr int kMaxJobTrials = 100;
inline constexpr size_t kMaxJobParameters = 100;
inline constexpr int kMaxJobChoices = 100;
inline constexpr size_t kMaxJobText = 64;  // of a name, a choice, a bound

// The variable that has the value of a parameter, as Trainer's controller calls it.
std::string JobVariable(const std::string& parameter);
// Of all parameters: the variable, and whose value it has. The same in upper case as well, where
// that is the variable of one alone.
std::vector<std::pair<std::string, std::string>> JobVariables(
    const google::protobuf::RepeatedPtrField<v1::ParameterSpec>& parameters);
// Why no variable can have that parameter's name in it; "" if one can.
std::string WhyNoVariable(const std::string& parameter);

// An Experiment as an OptimizationJob, `object` of what it returns. An error says what cannot be
// one: a template that is no TrainJob, a parameter that stands where no environment is expanded.
Conversion WriteOptimizationJob(std::string_view text);

// A part of a file as values of a message, and of JSON.
google::protobuf::Value ProtoValue(const YamlNode& node);
nlohmann::ordered_json JsonValue(const YamlNode& node);

}  // namespace shirabe::convert
