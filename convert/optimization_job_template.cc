// The trainJobTemplate of an OptimizationJob as a trial's template: a TrainJob with the values of
// the parameters in the environment of its program.
#include <nlohmann/json.hpp>

#include <map>

#include "absl/strings/str_cat.h"
#include "base/text/json_text.h"
#include "convert/optimization_job.h"
#include "convert/readers.h"
#include "convert/trial_program.h"

namespace shirabe::convert {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;

constexpr char kJobNode[] = "node";
constexpr char kTrialSpec[] = "spec.trialTemplate.trialSpec";

Struct& StructIn(Struct& parent, const std::string& key) {
  return *(*parent.mutable_fields())[key].mutable_struct_value();
}

void SetField(Struct& parent, const std::string& key, const std::string& text) {
  (*parent.mutable_fields())[key].set_string_value(text);
}

class TemplateReader {
 public:
  explicit TemplateReader(const Reading& reading)
      : spec_(*reading.experiment.mutable_spec()),
        made_(*spec_.mutable_trial_template()),
        report_(reading.report) {}

  void Run(Fields& parent) {
    Fields fields = parent.Child("trainJobTemplate");
    Struct& job = *made_.mutable_trial_spec();
    SetField(job, "apiVersion", kTrainerVersion);
    SetField(job, "kind", "TrainJob");
    ReadJobMetadata(fields, job);
    const YamlNode* spec = fields.Find("spec");
    if (spec == nullptr || spec->kind != YamlNode::Kind::kMapping) {
      return report_.Error(fields.At("spec"), "must be the spec of a TrainJob");
    }
    (*job.mutable_fields())["spec"] = ProtoValue(*spec);
    report_.Taken(fields.At("spec"), {absl::StrCat(kTrialSpec, ".spec")});
    AddEnvironment(fields, StructIn(job, "spec"));
    for (const v1::ParameterSpec& parameter : spec_.parameters()) {
      v1::TrialParameterSpec& bound = *made_.add_trial_parameters();
      bound.set_name(parameter.name());
      bound.set_reference(parameter.name());
    }
    made_.set_primary_container_name(kJobNode);
    fields.Finish("a trainJobTemplate");
  }

 private:
  void ReadJobMetadata(Fields& fields, Struct& job) {
    Fields metadata = fields.Child("metadata");
    for (const char* key : {"name", "namespace"}) {
      if (metadata.Find(key) == nullptr) continue;
      report_.Error(metadata.At(key),
                    "cannot be set in a template: leave it out, trials have "
                    "names of their own, and the namespace of the object");
    }
    for (const char* key : {"labels", "annotations"}) {
      for (const auto& [name, value] : metadata.Pairs(key)) {
        SetField(StructIn(StructIn(job, "metadata"), key), name, value);
      }
      if (!metadata.Has(key)) continue;
      report_.Taken(metadata.At(key), {absl::StrCat(kTrialSpec, ".metadata.", key)});
    }
    metadata.Finish("a trainJobTemplate");
    AddAssignment(StructIn(StructIn(job, "metadata"), "annotations"));
  }

  // Values are put into the text as they are: one that JSON writes otherwise would break it.
  void AddAssignment(Struct& annotations) {
    nlohmann::ordered_json all = nlohmann::ordered_json::object();
    for (const v1::ParameterSpec& parameter : spec_.parameters()) {
      for (const std::string& choice : parameter.feasible_space().list()) {
        if (JsonQuoted(choice).size() != choice.size() + 2) return;
      }
      all[parameter.name()] = ValueOf(parameter.name());
    }
    SetField(annotations, kTrialAssignment, JsonText(all));
  }

  void AddEnvironment(const Fields& fields, Struct& spec) {
    Value& trainer = (*spec.mutable_fields())["trainer"];
    if (trainer.kind_case() == Value::kNullValue) trainer.Clear();
    if (trainer.kind_case() != Value::KIND_NOT_SET && !trainer.has_struct_value()) {
      return report_.Error(fields.At("spec"), "its trainer must be a mapping");
    }
    Value& env = (*trainer.mutable_struct_value()->mutable_fields())["env"];
    if (env.kind_case() == Value::kNullValue) env.Clear();
    if (env.kind_case() != Value::KIND_NOT_SET && !env.has_list_value()) {
      return report_.Error(fields.At("spec"), "its trainer.env must be a list");
    }
    const auto variables = JobVariables(spec_.parameters());
    ListValue kept;
    for (const Value& entry : env.list_value().values()) {
      const auto& named = entry.struct_value().fields();
      const auto name = named.find("name");
      const std::string text = name == named.end() ? "" : name->second.string_value();
      const bool ours = std::any_of(variables.begin(), variables.end(),
                                    [&](const auto& variable) { return variable.first == text; });
      if (!ours) *kept.add_values() = entry;
      if (ours)
        report_.LeftOut(fields.At("spec"), absl::StrCat("its trainer.env has ", text,
                                                        ", where a parameter's value is"));
    }
    for (const auto& [name, parameter] : variables) {
      Struct& entry = *kept.add_values()->mutable_struct_value();
      SetField(entry, "name", name);
      SetField(entry, "value", ValueOf(parameter));
    }
    *env.mutable_list_value() = std::move(kept);
  }

  v1::ExperimentSpec& spec_;
  v1::TrialTemplate& made_;
  Report& report_;
};

}  // namespace

void ReadTrainJobTemplate(const Reading& reading, Fields& spec) {
  TemplateReader(reading).Run(spec);
}

}  // namespace shirabe::convert
