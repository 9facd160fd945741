#include "convert/trial_program.h"

#include <set>

#include "absl/strings/str_cat.h"
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

}  // namespace shirabe::convert
