// Rules of spec.trialTemplate: one source, complete conditions, and every name bound and used.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/names.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/trial_point.h"
#include "experiment/spec/validate_rules.h"
#include "trial/gjson/gjson.h"
#include "trial/inactive_parameters.h"
#include "trial/trial_template.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

constexpr double kMaxDevices = 1 << 16;
constexpr const char* kTemplate = "spec.trialTemplate";
constexpr const char* kTrialSpec = "spec.trialTemplate.trialSpec";
constexpr const char* kTrialParameters = "spec.trialTemplate.trialParameters";

const Value& Get(const Struct& object, const std::string& key) {
  const auto found = object.fields().find(key);
  return found == object.fields().end() ? Value::default_instance() : found->second;
}

// Strings of the object that hold `text`, with their paths, in the order of the keys.
using Texts = std::vector<std::pair<std::string, const std::string*>>;

void CollectTexts(const Value& value, const std::string& path, std::string_view text, Texts& out) {
  if (value.has_string_value() && value.string_value().find(text) != std::string::npos) {
    out.emplace_back(path, &value.string_value());
  }
  std::map<std::string, const Value*> sorted;
  for (const auto& [key, child] : value.struct_value().fields()) sorted.emplace(key, &child);
  for (const auto& [key, child] : sorted) CollectTexts(*child, ChildPath(path, key), text, out);
  for (int i = 0; i < value.list_value().values_size(); ++i) {
    CollectTexts(value.list_value().values(i), ItemPath(path, i), text, out);
  }
}

Texts TextsWith(const Value& object, std::string_view text) {
  Texts texts;
  CollectTexts(object, kTrialSpec, text, texts);
  return texts;
}

Value ObjectOf(const v1::TrialTemplate& trial) {
  Value object;
  *object.mutable_struct_value() = trial.trial_spec();
  return object;
}

// The names of all containers in the object, wherever a list of them is.
void CollectContainers(const Value& value, std::set<std::string>& names) {
  for (const Value& item : value.list_value().values()) CollectContainers(item, names);
  for (const auto& [key, child] : value.struct_value().fields()) {
    CollectContainers(child, names);
    if (key != "containers") continue;
    for (const Value& container : child.list_value().values()) {
      const Value& name = Get(container.struct_value(), "name");
      if (name.has_string_value()) names.insert(name.string_value());
    }
  }
}

// Kinds whose containers all stand in the object; elsewhere a controller adds or renames them.
bool ShowsContainers(const std::string& kind) {
  static const std::set<std::string> kKinds = {"Job",    "Pod",   "TFJob",      "PyTorchJob",
                                               "MPIJob", "MXJob", "XGBoostJob", "PaddleJob"};
  return kKinds.count(kind) > 0;
}

void CheckObject(const v1::TrialTemplate& trial, Findings& findings) {
  for (const char* field : {"apiVersion", "kind"}) {
    if (Get(trial.trial_spec(), field).string_value().empty()) {
      findings.Error(ChildPath(kTrialSpec, field),
                     "is required: it says what kind of object runs a trial");
    }
  }
  for (const char* field : {"name", "namespace"}) {
    const Struct& metadata = Get(trial.trial_spec(), "metadata").struct_value();
    if (metadata.fields().contains(field)) {
      findings.Error(ChildPath(ChildPath(kTrialSpec, "metadata"), field),
                     "remove it: each trial's object gets a name and namespace of its own");
    }
  }
  const Value object = ObjectOf(trial);
  for (const auto& [path, text] : TextsWith(object, "${trialSpec.")) {
    findings.Warn(path, Quoted(*text) +
                            " is not replaced here: make it the reference of a "
                            "trialParameter, and use that");
  }
}

void CheckContainer(const v1::TrialTemplate& trial, Findings& findings) {
  if (!ShowsContainers(Get(trial.trial_spec(), "kind").string_value())) return;
  std::set<std::string> names;
  CollectContainers(ObjectOf(trial), names);
  if (names.count(trial.primary_container_name()) > 0) return;
  const std::string known =
      names.empty() ? "it has none with a name" : "it has " + absl::StrJoin(names, ", ");
  findings.Error(
      ChildPath(kTemplate, "primaryContainerName"),
      "trialSpec has no container " + Quoted(trial.primary_container_name()) + "; " + known);
}

// What trains: other resources of the same vendors (network adapters, say) go well with them.
bool IsAccelerator(const std::string& resource) {
  for (const char* prefix : {"nvidia.com/gpu", "nvidia.com/mig-", "amd.com/gpu", "gpu.intel.com/",
                             "google.com/tpu", "aws.amazon.com/neuron", "habana.ai/gaudi"}) {
    if (resource.rfind(prefix, 0) == 0) return true;
  }
  return false;
}

// A device is given whole or not at all; a number that a trial's parameter decides is seen then.
void CheckDeviceCount(const Value& count, const std::string& path, Findings& findings) {
  if (count.string_value().find("${trialParameters.") != std::string::npos) return;
  std::optional<double> number = ParseNumber(count.string_value());
  if (count.has_number_value()) number = count.number_value();
  if (number && *number >= 0 && *number <= kMaxDevices && *number == std::floor(*number)) return;
  const std::string given =
      count.has_number_value() ? FormatNumber(*number) : Quoted(count.string_value());
  findings.Error(path, "must be a whole number of devices, such as 1, not " + given);
}

void CheckDevices(const Value& container, const std::string& path, Findings& findings) {
  const Struct& resources = Get(container.struct_value(), "resources").struct_value();
  std::set<std::string> types;
  for (const char* kind : {"limits", "requests"}) {
    for (const auto& [name, count] : Get(resources, kind).struct_value().fields()) {
      if (!IsAccelerator(name)) continue;
      types.insert(name);
      CheckDeviceCount(count, ChildPath(ChildPath(path, "resources"), kind) + "[\"" + name + "\"]",
                       findings);
    }
  }
  if (types.size() < 2) return;
  findings.Warn(ChildPath(path, "resources"),
                "asks for devices of several types (" + absl::StrJoin(types, ", ") +
                    "): a program on CUDA uses those of one alone, and hardly a node has them "
                    "all; ask for one type");
}

// In every list of containers of the object, wherever it is.
void CheckAllDevices(const Value& value, const std::string& path, Findings& findings) {
  for (int i = 0; i < value.list_value().values_size(); ++i) {
    CheckAllDevices(value.list_value().values(i), ItemPath(path, i), findings);
  }
  std::map<std::string, const Value*> sorted;
  for (const auto& [key, child] : value.struct_value().fields()) sorted.emplace(key, &child);
  for (const auto& [key, child] : sorted) {
    CheckAllDevices(*child, ChildPath(path, key), findings);
    if (key != "containers" && key != "initContainers") continue;
    for (int i = 0; i < child->list_value().values_size(); ++i) {
      CheckDevices(child->list_value().values(i), ItemPath(ChildPath(path, key), i), findings);
    }
  }
}

void CheckConditions(const v1::TrialTemplate& trial, Findings& findings) {
  const std::string kind = Get(trial.trial_spec(), "kind").string_value();
  const std::string why = trial.has_config_map() ? " with a configMap" : " for kind " + kind;
  for (const auto& [field, text] : {std::pair{"successCondition", &trial.success_condition()},
                                    std::pair{"failureCondition", &trial.failure_condition()}}) {
    if (text->empty() && (trial.has_config_map() || !kind.empty())) {
      findings.Error(ChildPath(kTemplate, field),
                     "is required" + why + ": a GJSON path into the object's status");
    }
    if (text->empty()) continue;
    const Status readable = trial::ValidateGjson(*text);
    if (!readable.ok()) findings.Error(ChildPath(kTemplate, field), shirabe::Message(readable));
  }
}

// Whether every parameter's name could be read: else none can be called unknown.
bool NamesAreRead(const v1::ExperimentSpec& spec, const Findings& findings) {
  for (int i = 0; i < spec.parameters_size(); ++i) {
    if (findings.IsUnreadable(ItemPath("spec.parameters", i) + ".name")) return false;
  }
  return spec.parameters_size() > 0;
}

std::vector<std::string> ParameterNames(const v1::ExperimentSpec& spec) {
  std::vector<std::string> names;
  for (const auto& parameter : spec.parameters()) names.push_back(parameter.name());
  return names;
}

// What a reference may name.
struct SearchNames {
  std::vector<std::string> list;  // empty where none can be called unknown
  std::set<std::string> set;
};

void CheckReference(const std::string& reference, const std::string& path,
                    const SearchNames& parameters, Findings& findings) {
  if (trial::IsMetadataReference(reference)) return;
  if (reference.find("${") != std::string::npos) {
    findings.Error(path,
                   Quoted(reference) +
                       " is unknown metadata; known: ${trialSpec.Name}, ${trialSpec.Namespace}"
                       ", ${trialSpec.Kind}, ${trialSpec.APIVersion}, "
                       "${trialSpec.Labels[KEY]}, ${trialSpec.Annotations[KEY]}");
  } else if (!parameters.list.empty() && !parameters.set.contains(reference)) {
    findings.Error(path, Quoted(reference) + " is not a parameter of the search space" +
                             DidYouMean(reference, parameters.list));
  }
}

// Names and references of spec.trialTemplate.trialParameters. NAS algorithms make their own
// parameters, so there a reference may be anything.
void CheckTrialParameters(const v1::ExperimentSpec& spec, Findings& findings) {
  std::set<std::string> names;
  std::map<std::string, int> references;
  SearchNames parameters;
  if (NamesAreRead(spec, findings)) parameters.list = ParameterNames(spec);
  parameters.set = {parameters.list.begin(), parameters.list.end()};
  const auto& bound = spec.trial_template().trial_parameters();
  for (int i = 0; i < bound.size() && !findings.full(); ++i) {
    const std::string path = ItemPath(kTrialParameters, i);
    const std::string& name = bound[i].name();
    const std::string& reference = bound[i].reference();
    if (name.find_first_of("{}") != std::string::npos) {
      findings.Error(path + ".name", Quoted(name) + " must not hold a brace");
    } else if (!name.empty() && !names.insert(name).second) {
      findings.Error(path + ".name", Quoted(name) + " is given twice: rename one");
    }
    if (reference.empty()) continue;
    const auto [first, fresh] = references.emplace(reference, i);
    if (!fresh) {
      findings.Error(path + ".reference", Quoted(reference) + " has the trialParameter " +
                                              Quoted(bound[first->second].name()) +
                                              " already: use that twice");
    }
    CheckReference(reference, path + ".reference", parameters, findings);
    if (!spec.trial_template().has_trial_spec()) continue;
    const auto& object = spec.trial_template().trial_spec();
    const Status there = trial::CheckMetadataReference(reference, object);
    if (!there.ok()) findings.Error(path + ".reference", shirabe::Message(there));
  }
}

// Every ${trialParameters.x} of the object must be bound, and every trialParameter used.
void CheckUses(const v1::ExperimentSpec& spec, Findings& findings) {
  const auto& trial = spec.trial_template();
  const auto all = trial::ReferencedParameters(trial.trial_spec());
  const std::set<std::string> used(all.begin(), all.end());
  std::vector<std::string> bound;
  for (int i = 0; i < trial.trial_parameters_size(); ++i) {
    const std::string& name = trial.trial_parameters(i).name();
    bound.push_back(name);
    if (name.empty() || used.contains(name)) continue;
    findings.Error(ItemPath(kTrialParameters, i) + ".name",
                   Quoted(name) + " is not used: write ${trialParameters." + name +
                       "} in trialSpec, or remove it");
  }
  if (findings.IsUnreadable(kTrialParameters)) return;
  std::set<std::string> unbound = used;
  for (const std::string& name : bound) unbound.erase(name);
  const Value object = ObjectOf(trial);
  const auto parameters = ParameterNames(spec);
  const std::set<std::string> searched(parameters.begin(), parameters.end());
  for (const auto& [path, text] : TextsWith(object, "${trialParameters.")) {
    for (const std::string& name : trial::ReferencedIn(*text)) {
      if (findings.full()) return;
      if (unbound.erase(name) == 0) continue;  // bound, or reported where it stands first
      findings.Error(
          path, "${trialParameters." + name + "} is bound by no trialParameter" +
                    (searched.contains(name) ? "; add {name: " + name + ", reference: " + name + "}"
                                             : DidYouMean(name, bound)));
    }
  }
}

// A parameter that does not exist in every trial must stand where it can be left out.
void CheckConditional(const v1::ExperimentSpec& spec, Findings& findings) {
  const std::set<std::string> conditional = ConditionalParameters(spec);
  std::set<std::string> names;
  for (const auto& bound : spec.trial_template().trial_parameters()) {
    if (conditional.contains(bound.reference())) names.insert(bound.name());
  }
  Struct object = spec.trial_template().trial_spec();
  for (const auto& [path, name] : trial::RemoveReferences(object, names)) {
    if (findings.full()) return;
    findings.Error(path,
                   absl::StrCat("${trialParameters.", name,
                                "} does not exist in every trial (spec.shirabe.space.conditions), "
                                "and cannot be left out here: ",
                                trial::kRemovableForms));
  }
}

// A parameter that nothing in the object takes: the program can still read it from its environment.
void CheckUnusedParameters(const v1::ExperimentSpec& spec, Findings& findings) {
  std::set<std::string> references;
  for (const auto& bound : spec.trial_template().trial_parameters()) {
    references.insert(bound.reference());
  }
  if (findings.IsUnreadable(kTrialParameters)) return;
  for (int i = 0; i < spec.parameters_size(); ++i) {
    const std::string& name = spec.parameters(i).name();
    if (name.empty() || references.count(name) > 0) continue;
    findings.Warn(ItemPath("spec.parameters", i) + ".name",
                  Quoted(name) +
                      " is referenced by no trialParameter: a trial can only read it as " +
                      ParameterVariable(name));
  }
}

}  // namespace

void CheckTemplate(const v1::ExperimentSpec& spec, Findings& findings) {
  const bool asked = spec.shirabe().ask_and_tell();
  if (asked && spec.has_trial_template()) {
    findings.Error(kTemplate,
                   "does not go with spec.shirabe.askAndTell, where the callers run the trials: "
                   "remove one of the two");
  } else if (!asked && !spec.has_trial_template()) {
    findings.Error(kTemplate,
                   "is required: what one trial runs (or spec.shirabe.askAndTell: true, "
                   "where the callers run the trials)");
  }
  if (!spec.has_trial_template()) return;
  const v1::TrialTemplate& trial = spec.trial_template();
  const int errors = findings.errors();
  CheckTrialParameters(spec, findings);
  // A wrong reference was probably meant for the parameter that seems unused.
  if (findings.errors() == errors) CheckUnusedParameters(spec, findings);
  if (trial.has_trial_spec() && trial.has_config_map()) {
    findings.Error(ChildPath(kTemplate, "configMap"),
                   "does not go with trialSpec: give one of the two");
  } else if (!trial.has_trial_spec() && !trial.has_config_map()) {
    if (findings.IsUnreadable(ChildPath(kTemplate, "configMap"))) return;
    findings.Error(kTrialSpec, "is required: the object that runs a trial, or a configMap with it");
    return;
  }
  CheckConditions(trial, findings);
  if (!trial.has_trial_spec()) return;
  CheckObject(trial, findings);
  if (trial.trial_spec().fields().empty()) return;
  CheckContainer(trial, findings);
  CheckAllDevices(ObjectOf(trial), kTrialSpec, findings);
  CheckUses(spec, findings);
  CheckConditional(spec, findings);
}

}  // namespace shirabe::experiment
