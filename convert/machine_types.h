// What a machine of Google's clouds has, by the name of its type. Used by the readers of its files;
// a pure function.
#pragma once

#include <optional>
#include <string>

namespace shirabe::convert {

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
