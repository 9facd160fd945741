#include "convert/trial_program.h"

#include <cmath>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "trial/trial_template.h"

namespace shirabe::convert {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr char kPrimaryContainer[] = "training";

Struct& ObjectAt(Struct& parent, const std::string& key) {
  return *(*parent.mutable_fields())[key].mutable_struct_value();
}

void SetText(Struct& parent, const std::string& key, const std::string& text) {
  (*parent.mutable_fields())[key].set_string_value(text);
}

void SetList(Struct& parent, const std::string& key, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  auto& list = *(*parent.mutable_fields())[key].mutable_list_value();
  for (const std::string& text : texts) list.add_values()->set_string_value(text);
}

void SetResources(const TrialProgram& program, Struct& container) {
  if (program.cpu.empty() && program.memory.empty() && program.gpus == 0) return;
  Struct& resources = ObjectAt(container, "resources");
  if (!program.cpu.empty()) SetText(ObjectAt(resources, "requests"), "cpu", program.cpu);
  if (!program.memory.empty()) SetText(ObjectAt(resources, "requests"), "memory", program.memory);
  if (program.gpus == 0) return;
  Struct& limits = ObjectAt(resources, "limits");
  (*limits.mutable_fields())["nvidia.com/gpu"].set_number_value(program.gpus);
}

}  // namespace

std::string Literal(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    out += text[i];
    if (text[i] == '$' && (next == '$' || next == '(')) out += '$';
  }
  return out;
}

std::string ValueOf(const std::string& parameter) {
  return absl::StrCat("${trialParameters.", parameter, "}");
}

void SetTemplate(const TrialProgram& program, v1::ExperimentSpec& spec) {
  v1::TrialTemplate& made = *spec.mutable_trial_template();
  made.set_primary_container_name(kPrimaryContainer);
  Struct& job = *made.mutable_trial_spec();
  SetText(job, "apiVersion", "batch/v1");
  SetText(job, "kind", "Job");
  Struct& pod = ObjectAt(ObjectAt(ObjectAt(job, "spec"), "template"), "spec");
  SetText(pod, "restartPolicy", "Never");
  Struct& container = *(*pod.mutable_fields())["containers"]
                           .mutable_list_value()
                           ->add_values()
                           ->mutable_struct_value();
  SetText(container, "name", kPrimaryContainer);
  SetText(container, "image", program.image);
  SetList(container, "command", program.command);
  SetList(container, "args", program.args);
  for (const auto& [name, value] : program.env) {
    Struct& entry = *(*container.mutable_fields())["env"]
                         .mutable_list_value()
                         ->add_values()
                         ->mutable_struct_value();
    SetText(entry, "name", name);
    SetText(entry, "value", value);
  }
  SetResources(program, container);
  const std::vector<std::string> all = trial::ReferencedParameters(made.trial_spec());
  const std::set<std::string> used(all.begin(), all.end());
  for (const v1::ParameterSpec& parameter : spec.parameters()) {
    if (!used.contains(parameter.name())) continue;
    v1::TrialParameterSpec& bound = *made.add_trial_parameters();
    bound.set_name(parameter.name());
    bound.set_reference(parameter.name());
  }
}

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
