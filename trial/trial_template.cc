#include "trial/trial_template.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/number.h"

namespace shirabe::trial {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;
using Bindings = std::map<std::string, std::string>;

constexpr std::string_view kParameterOpen = "${trialParameters.";
constexpr std::string_view kMetadataOpen = "${trialSpec.";
constexpr const char* kSpecPath = "spec.trialTemplate.trialSpec";

// ---- references inside one string ---------------------------------------------------------------

struct Reference {
  size_t begin = 0;  // of "${"
  size_t end = 0;    // past "}"
  std::string name;
};

// The first ${trialParameters.NAME} at or after `from`. What has no end or no name is plain text.
std::optional<Reference> FindReference(std::string_view text, size_t from) {
  while ((from = text.find(kParameterOpen, from)) != std::string_view::npos) {
    const size_t name = from + kParameterOpen.size();
    const size_t close = text.find('}', name);
    if (close == std::string_view::npos) return std::nullopt;
    if (close > name) {
      return Reference{from, close + 1, std::string(text.substr(name, close - name))};
    }
    from = close;
  }
  return std::nullopt;
}

void CollectNames(std::string_view text, std::set<std::string>& names) {
  size_t from = 0;
  while (const auto reference = FindReference(text, from)) {
    names.insert(reference->name);
    from = reference->end;
  }
}

// One pass: what a value brings along is never looked at again.
StatusOr<std::string> Substitute(const std::string& text, const Bindings& bindings) {
  std::string result;
  size_t from = 0;
  while (const auto reference = FindReference(text, from)) {
    const auto bound = bindings.find(reference->name);
    if (bound == bindings.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("${trialParameters.", reference->name,
                       "} is bound by no entry of spec.trialTemplate.trialParameters; add {name: ",
                       reference->name, ", reference: <a parameter>}"));
    }
    result.append(text, from, reference->begin - from).append(bound->second);
    from = reference->end;
  }
  return result.append(text, from);
}

// ---- the tree -----------------------------------------------------------------------------------

void CollectNames(const Value& value, std::set<std::string>& names) {
  if (value.kind_case() == Value::kStringValue) {
    CollectNames(std::string_view(value.string_value()), names);
  }
  for (const auto& [key, field] : value.struct_value().fields()) CollectNames(field, names);
  for (const Value& item : value.list_value().values()) CollectNames(item, names);
}

// Replaces every string of the tree; `path` is where `value` stands, for messages.
Status SubstituteTree(Value& value, const std::string& path, const Bindings& bindings) {
  if (value.kind_case() == Value::kStringValue) {
    auto text = Substitute(value.string_value(), bindings);
    if (!text.ok()) return Prefix(path, text.status());
    value.set_string_value(*std::move(text));
  } else if (value.kind_case() == Value::kStructValue) {
    for (auto& [key, field] : *value.mutable_struct_value()->mutable_fields()) {
      RETURN_IF_ERROR(SubstituteTree(field, absl::StrCat(path, ".", key), bindings));
    }
  } else if (value.kind_case() == Value::kListValue) {
    for (int i = 0; i < value.list_value().values_size(); ++i) {
      RETURN_IF_ERROR(SubstituteTree(*value.mutable_list_value()->mutable_values(i),
                                     absl::StrCat(path, "[", i, "]"), bindings));
    }
  }
  return absl::OkStatus();
}

const Value& FieldOf(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  return found == object.fields().end() ? Value::default_instance() : found->second;
}

// ---- metadata -----------------------------------------------------------------------------------

// ${trialSpec.Name} is {"Name", ""}, ${trialSpec.Labels[app]} is {"labels", "app"}.
struct MetadataKey {
  std::string field;
  std::string index;
};

std::optional<MetadataKey> ParseMetadata(std::string_view reference) {
  if (reference.substr(0, kMetadataOpen.size()) != kMetadataOpen) return std::nullopt;
  if (reference.back() != '}') return std::nullopt;
  const std::string_view key =
      reference.substr(kMetadataOpen.size(), reference.size() - kMetadataOpen.size() - 1);
  for (std::string_view plain : {"Name", "Namespace", "Kind", "APIVersion"}) {
    if (key == plain) return MetadataKey{std::string(key), ""};
  }
  const std::pair<std::string_view, const char*> maps[] = {{"Labels[", "labels"},
                                                           {"Annotations[", "annotations"}};
  for (const auto& [open, field] : maps) {
    if (key.substr(0, open.size()) != open || key.back() != ']') continue;
    const std::string_view index = key.substr(open.size(), key.size() - open.size() - 1);
    if (!index.empty()) return MetadataKey{field, std::string(index)};
  }
  return std::nullopt;
}

StatusOr<std::string> ReadMetadata(const MetadataKey& key, const Struct& spec,
                                   const TrialKey& trial) {
  if (key.field == "Name") return TrialName(trial);
  if (key.field == "Namespace") return trial.experiment.ns;
  if (key.field == "Kind") return FieldOf(spec, "kind").string_value();
  if (key.field == "APIVersion") return FieldOf(spec, "apiVersion").string_value();
  const Struct& metadata = FieldOf(spec, "metadata").struct_value();
  const Value& found = FieldOf(FieldOf(metadata, key.field).struct_value(), key.index);
  if (found.kind_case() == Value::kStringValue) return found.string_value();
  return absl::InvalidArgumentError(absl::StrCat("there is no ", kSpecPath, ".metadata.", key.field,
                                                 "[\"", key.index, "\"]; add it as text"));
}

// ---- what each trial parameter stands for -------------------------------------------------------

StatusOr<std::string> Resolve(const std::string& reference, const v1::TrialTemplate& from,
                              const TrialKey& trial, const Bindings& values) {
  if (const auto key = ParseMetadata(reference)) {
    return ReadMetadata(*key, from.trial_spec(), trial);
  }
  const auto found = values.find(reference);
  if (found != values.end()) return found->second;
  const auto name_of = [](std::string* out, const auto& value) { out->append(value.first); };
  return absl::InvalidArgumentError(
      absl::StrCat("\"", reference, "\" is not a parameter of this trial, which has: ",
                   values.empty() ? "none" : absl::StrJoin(values, ", ", name_of),
                   "; name one of them, or trial metadata such as ${trialSpec.Name}"));
}

StatusOr<Bindings> Bind(const v1::TrialTemplate& from, const TrialKey& trial,
                        const std::vector<v1::Assignment>& assignments) {
  Bindings values;
  for (const v1::Assignment& one : assignments) values[one.name()] = FormatAssignment(one);
  Bindings bindings;
  for (int i = 0; i < from.trial_parameters_size(); ++i) {
    const v1::TrialParameterSpec& parameter = from.trial_parameters(i);
    auto value = Resolve(parameter.reference(), from, trial, values);
    if (!value.ok()) {
      return Prefix(absl::StrCat("spec.trialTemplate.trialParameters[", i, "].reference"),
                    value.status());
    }
    bindings[parameter.name()] = *std::move(value);
  }
  return bindings;
}

}  // namespace

std::string FormatAssignment(const v1::Assignment& assignment) {
  switch (assignment.value_case()) {
    case v1::Assignment::kNumber: return FormatNumber(assignment.number());
    case v1::Assignment::kInteger: return std::to_string(assignment.integer());
    case v1::Assignment::kCategory: return assignment.category();
    case v1::Assignment::VALUE_NOT_SET: break;
  }
  return "";
}

std::set<std::string> ReferencedIn(const std::string& text) {
  std::set<std::string> names;
  CollectNames(std::string_view(text), names);
  return names;
}

std::vector<std::string> ReferencedParameters(const Struct& trial_spec) {
  std::set<std::string> names;
  for (const auto& [key, field] : trial_spec.fields()) CollectNames(field, names);
  return {names.begin(), names.end()};
}

bool IsMetadataReference(const std::string& reference) {
  return ParseMetadata(reference).has_value();
}

StatusOr<Struct> Render(const v1::TrialTemplate& trial_template, const TrialKey& trial,
                        const std::vector<v1::Assignment>& assignments) {
  if (!trial_template.has_trial_spec()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kSpecPath, " is missing; write there the object that runs one trial"));
  }
  ASSIGN_OR_RETURN(const Bindings bindings, Bind(trial_template, trial, assignments));
  Struct rendered = trial_template.trial_spec();
  for (auto& [key, field] : *rendered.mutable_fields()) {
    RETURN_IF_ERROR(SubstituteTree(field, absl::StrCat(kSpecPath, ".", key), bindings));
  }
  return rendered;
}

}  // namespace shirabe::trial
