#include "trial/trial_template.h"

#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sorting.h"
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

using google::protobuf::Struct;
using google::protobuf::Value;

// Every container of every pod specification of the tree, wherever it lies: a Pod has one, a Job
// one below its template, a training operator's object one for each role.
class Collector {
 public:
  void Visit(const Value& value, const std::string& path) {
    above_.push_back({&value.struct_value(), path});
    for (const auto& [key, field] : value.struct_value().fields()) {
      const std::string below = absl::StrCat(path, ".", key);
      if (key == "containers" && field.kind_case() == Value::kListValue) {
        for (int i = 0; i < field.list_value().values_size(); ++i) {
          Add(field.list_value().values(i).struct_value(), absl::StrCat(below, "[", i, "]"));
        }
      } else {
        Visit(field, below);
      }
    }
    for (int i = 0; i < value.list_value().values_size(); ++i) {
      Visit(value.list_value().values(i), absl::StrCat(path, "[", i, "]"));
    }
    above_.pop_back();
  }

  // A map's order is arbitrary; messages are not.
  std::vector<TemplatePod> Release() {
    StableSort(found_, [](const TemplatePod& a, const TemplatePod& b) {
      return a.container.path < b.container.path;
    });
    return std::move(found_);
  }

 private:
  void Add(const Struct& container, const std::string& path) {
    TemplatePod pod{{&container, path}, above_.back(), {}};
    const size_t depth = above_.size();
    // …spec → template → spec, which is the pod's.
    const bool templated = depth >= 3 &&
                           IsField(above_[depth - 3], "template", above_[depth - 2]) &&
                           IsField(above_[depth - 2], "spec", above_[depth - 1]);
    if (templated) pod.job = above_[depth - 3];
    found_.push_back(std::move(pod));
  }

  static bool IsField(const TemplatePart& part, const std::string& name, const TemplatePart& of) {
    const Value* field = FindField(*part.fields, name);
    return field != nullptr && &field->struct_value() == of.fields;
  }

  std::vector<TemplatePart> above_;
  std::vector<TemplatePod> found_;
};

Status NoSuchContainer(const Value& object, const std::string& name,
                       const std::vector<TemplatePod>& all) {
  if (all.empty()) {
    const Value* kind = FindField(object.struct_value(), "kind");
    const bool train_job = kind != nullptr && kind->string_value() == "TrainJob";
    return InvalidField(
        kTrialSpecPath,
        train_job ? "is a TrainJob, whose containers are in a runtime of a cluster: apply it there "
                    "(`shirabe controller` runs it); to run on this machine, write a Job with "
                    "spec.template.spec.containers"
                  : "holds no containers; write a Job with spec.template.spec.containers");
  }
  const auto quote = [](std::string* out, const TemplatePod& pod) {
    absl::StrAppend(out, "\"", ContainerName(*pod.container.fields), "\"");
  };
  return InvalidField(
      "spec.trialTemplate.primaryContainerName",
      absl::StrCat("\"", name, "\" is not a container of the trial's object, which has: ",
                   absl::StrJoin(all, ", ", quote), "; name one of them"));
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

Status CheckMetadataReference(const std::string& reference, const Struct& trial_spec) {
  const auto key = ParseMetadata(reference);
  return key ? ReadMetadata(*key, trial_spec, {}).status() : absl::OkStatus();
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

StatusOr<TemplatePod> FindPod(const Value& object, const std::string& primary_container) {
  Collector collector;
  collector.Visit(object, kTrialSpecPath);
  const std::vector<TemplatePod> all = collector.Release();
  std::vector<TemplatePod> named;
  for (const TemplatePod& pod : all) {
    if (ContainerName(*pod.container.fields) == primary_container) named.push_back(pod);
  }
  if (named.empty()) return NoSuchContainer(object, primary_container, all);
  if (named.size() == 1) return named[0];
  return InvalidField(named[1].container.path,
                      absl::StrCat("a second container named \"", primary_container,
                                   "\" (the first is ", named[0].container.path,
                                   "); one process runs one container: a trial of several pods ",
                                   "needs a cluster"));
}

const Value* FindField(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  if (found == object.fields().end() || found->second.kind_case() == Value::kNullValue) {
    return nullptr;
  }
  return &found->second;
}

std::string ContainerName(const Struct& container) {
  const Value* name = FindField(container, "name");
  return name == nullptr ? "" : name->string_value();
}

Status InvalidField(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

}  // namespace shirabe::trial
