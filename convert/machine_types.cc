#include "convert/machine_types.h"

#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shirabe::convert {
namespace {

// Families of which the last part of the name is the number of processors.
struct Family {
  const char* prefix;
  double gb_per_cpu;
};

constexpr Family kFamilies[] = {
    {"n1-standard-", 3.75}, {"n1-highmem-", 6.5}, {"n1-highcpu-", 0.9}, {"n2-standard-", 4},
    {"n2-highmem-", 8},     {"n2-highcpu-", 1},   {"n2d-standard-", 4}, {"n2d-highmem-", 8},
    {"n2d-highcpu-", 1},    {"e2-standard-", 4},  {"e2-highmem-", 8},   {"e2-highcpu-", 1},
    {"c2-standard-", 4},    {"c2d-standard-", 4}, {"c2d-highmem-", 8},  {"c2d-highcpu-", 2},
    {"c3-standard-", 4},    {"c3-highmem-", 8},   {"c3-highcpu-", 2},
};

struct NamedType {
  const char* name;
  MachineType type;
};

constexpr NamedType kNamedTypes[] = {
    {"standard", {4, 15}},
    {"large_model", {8, 52}},
    {"complex_model_s", {8, 7.2}},
    {"complex_model_m", {16, 14.4}},
    {"complex_model_l", {32, 28.8}},
    {"standard_gpu", {8, 30, 1}},
    {"complex_model_m_gpu", {16, 60, 4}},
    {"complex_model_l_gpu", {32, 120, 8}},
    {"standard_p100", {8, 30, 1}},
    {"complex_model_m_p100", {16, 60, 4}},
    {"standard_v100", {8, 30, 1}},
    {"large_model_v100", {8, 52, 1}},
    {"complex_model_m_v100", {16, 60, 4}},
    {"complex_model_l_v100", {32, 120, 8}},
    {"a2-highgpu-1g", {12, 85, 1}},
    {"a2-highgpu-2g", {24, 170, 2}},
    {"a2-highgpu-4g", {48, 340, 4}},
    {"a2-highgpu-8g", {96, 680, 8}},
    {"a2-megagpu-16g", {96, 1360, 16}},
    {"a2-ultragpu-1g", {12, 170, 1}},
    {"a2-ultragpu-2g", {24, 340, 2}},
    {"a2-ultragpu-4g", {48, 680, 4}},
    {"a2-ultragpu-8g", {96, 1360, 8}},
    {"a3-highgpu-8g", {208, 1872, 8}},
    {"g2-standard-4", {4, 16, 1}},
    {"g2-standard-8", {8, 32, 1}},
    {"g2-standard-12", {12, 48, 1}},
    {"g2-standard-16", {16, 64, 1}},
    {"g2-standard-24", {24, 96, 2}},
    {"g2-standard-32", {32, 128, 1}},
    {"g2-standard-48", {48, 192, 4}},
    {"g2-standard-96", {96, 384, 8}},
};

constexpr int kMaxCpus = 1024;
constexpr double kShare = 0.75;
constexpr double kMibPerGb = 1e9 / (1 << 20);

}  // namespace

std::optional<MachineType> FindMachineType(const std::string& name) {
  for (const NamedType& known : kNamedTypes) {
    if (name == known.name) return known.type;
  }
  for (const Family& family : kFamilies) {
    const std::string prefix = family.prefix;
    int cpus = 0;
    if (name.rfind(prefix, 0) != 0 || !absl::SimpleAtoi(name.substr(prefix.size()), &cpus)) {
      continue;
    }
    if (cpus < 1 || cpus > kMaxCpus) return std::nullopt;
    return MachineType{static_cast<double>(cpus), cpus * family.gb_per_cpu, 0};
  }
  return std::nullopt;
}

std::string CpuRequest(const MachineType& type) {
  const double milli = std::floor(type.cpus * kShare * 1000);
  const auto whole = static_cast<int64_t>(milli);
  return whole % 1000 == 0 ? absl::StrCat(whole / 1000) : absl::StrCat(whole, "m");
}

std::string MemoryRequest(const MachineType& type) {
  return absl::StrCat(static_cast<int64_t>(std::floor(type.memory_gb * kShare * kMibPerGb)), "Mi");
}

}  // namespace shirabe::convert
