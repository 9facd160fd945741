// The object that runs a trial, made from what other systems say of a program: a Job with one
// container, which is a process on a laptop. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::convert {

// The image where none is named: trials of this machine need none.
inline constexpr char kNoImage[] = "local";

struct TrialProgram {
  std::string image = kNoImage;
  std::vector<std::string> command = {};  // as the container has it: $(VAR) is expanded
  std::vector<std::string> args = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  std::string cpu = {}, memory = {};  // requests; "" = none
  int gpus = 0;
};

// A text that a container hands on as it is: "$(" and "$$" would be expanded.
std::string Literal(const std::string& text);
// What stands for the value of a parameter.
std::string ValueOf(const std::string& parameter);

// Sets spec.trialTemplate, with a trialParameter for each parameter that the program is given.
void SetTemplate(const TrialProgram& program, v1::ExperimentSpec& spec);

// Where parts of it are, for reports.
inline constexpr char kContainerPath[] =
    "spec.trialTemplate.trialSpec.spec.template.spec.containers[0]";

// What a machine of Google's clouds has, by the name of its type. Used by the readers of its files;
// a pure function.
struct MachineType {
  double cpus = 0;
  double memory_gb = 0;
  int gpus = 0;  // that come with it
};

// n1-standard-16, a2-highgpu-1g, …, and AI Platform's own names: complex_model_m_gpu. nullopt for
// one that is not known.
std::optional<MachineType> FindMachineType(const std::string& name);

// Requests of a pod that has such a node to itself: three quarters, since a node keeps a part for
// itself, and no second pod fits. As Kubernetes writes them.
std::string CpuRequest(const MachineType& type);
std::string MemoryRequest(const MachineType& type);

}  // namespace shirabe::convert
