#include "convert/write_train_job.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "convert/optimization_job.h"
#include "convert/trial_program.h"
#include "trial/trial_template.h"

namespace shirabe::convert {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kTemplate[] = "a trialTemplate";
constexpr char kTo[] = "spec.trainJobTemplate";

class TrainJobWriter {
 public:
  TrainJobWriter(const v1::ExperimentSpec& spec, Report& report) : report_(report) {
    for (const auto& bound : spec.trial_template().trial_parameters()) {
      references_[bound.name()] = bound.reference();
    }
    for (const auto& [name, parameter] : JobVariables(spec.parameters()))
      variables_[name] = parameter;
  }

  OrderedJson Run(Fields& fields) {
    if (!fields.Has("trialTemplate")) {
      report_.Error(fields.place(), "cannot cross: spec.trialTemplate with a TrainJob is missing");
      return {};
    }
    Fields given = fields.Child("trialTemplate");
    if (given.Find("configMap") != nullptr) {
      report_.Error(given.At("configMap"),
                    "cannot cross: put the template itself into trialTemplate.trialSpec");
    }
    given.LeaveOut({"retain"}, "there the objects of trials stay with theirs");
    given.LeaveOut({"successCondition", "failureCondition"}, "those of a TrainJob count there");
    given.LeaveOut({"primaryContainerName", "primaryPodLabels"},
                   "there a trial's metrics are its TrainJob's");
    ReadBindings(given);
    Fields job = given.Child("trialSpec");
    const std::string kind = job.Text("kind").value_or("");
    const std::string version = job.Text("apiVersion").value_or("");
    OrderedJson made = OrderedJson::object();
    if (kind != "TrainJob" || !absl::StartsWith(version, absl::StrCat(kTrainerGroup, "/"))) {
      report_.Error(job.At("kind"),
                    absl::StrCat("cannot cross: the template is a ", version, " ", kind,
                                 ", and must be a TrainJob of ", kTrainerVersion));
    } else {
      report_.Taken(job.At("kind"), {kTo});
      WriteObject(job, made);
    }
    job.Finish(kTemplate);
    given.Finish(kTemplate);
    return made;
  }

 private:
  void ReadBindings(Fields& given) {
    for (Fields& bound : given.Items("trialParameters")) {
      const std::string name = bound.Text("name").value_or("");
      const std::string reference = bound.Text("reference").value_or("");
      bound.Find("description");
      if (trial::IsMetadataReference(reference)) {
        report_.LeftOut(bound.place(), reference + " has no counterpart there");
      } else {
        report_.Changed(bound.place(),
                        {absl::StrCat(kTo, ".spec.trainer.env"), JobVariable(reference)},
                        "the program has it in this variable");
      }
      bound.Finish(kTemplate);
    }
  }

  void WriteObject(Fields& job, OrderedJson& made) {
    Fields metadata = job.Child("metadata");
    metadata.LeaveOut({"name", "namespace"}, "trials have names of their own");
    for (const char* key : {"labels", "annotations"}) {
      const Place place = metadata.At(key);
      for (const auto& [name, value] : metadata.Pairs(key)) {
        if (name == kTrialAssignment) {
          report_.LeftOut(place, name + " is of a trial, as Shirabe runs it");
        } else if (trial::ReferencedIn(value).empty()) {
          made["metadata"][key][name] = value;
        } else {
          report_.LeftOut(place, absl::StrCat(name, " is ", value, ": no parameter comes there"));
        }
      }
      if (metadata.Has(key)) report_.Taken(place, {absl::StrCat(kTo, ".metadata.", key)});
    }
    metadata.Finish(kTemplate);
    const YamlNode* spec = job.Find("spec");
    if (spec == nullptr) return;
    made["spec"] = JsonValue(*spec);
    OrderedJson& written = made["spec"];
    report_.Taken(job.At("spec"), {absl::StrCat(kTo, ".spec")});
    if (written.is_object() && written.contains("trainer") && written["trainer"].is_object()) {
      WriteTrainer(job, written["trainer"]);
    }
    job.Find("status");
    Check(written, job.At("spec"));
  }

  // Kubernetes expands $(NAME) in command and args, and in what follows in env: where the
  // parameters come last, they are unknown to what stands before them.
  void WriteTrainer(Fields& job, OrderedJson& trainer) {
    const Place place = job.At("spec");
    for (const char* key : {"command", "args"}) {
      if (!trainer.contains(key) || !trainer[key].is_array()) continue;
      bool changed = false;
      for (OrderedJson& word : trainer[key]) {
        if (!word.is_string()) continue;
        const std::string before = word.get<std::string>();
        word = Expanded(before);
        changed = changed || word != before;
      }
      if (changed) {
        report_.Changed({absl::StrCat(place.path, ".trainer.", key), place.mark},
                        {absl::StrCat(kTo, ".spec.trainer.", key)},
                        "a parameter is $(KUBEFLOW_TRAINER_OPT_…), which Kubernetes expands");
      }
    }
    if (!trainer.contains("env") || !trainer["env"].is_array()) return;
    OrderedJson kept = OrderedJson::array();
    const Place of{absl::StrCat(place.path, ".trainer.env"), place.mark};
    for (OrderedJson& entry : trainer["env"]) {
      const std::string value = TextOf(entry, "value"), name = TextOf(entry, "name");
      const auto ours = variables_.find(name);
      if (trial::ReferencedIn(value).empty()) {
        kept.push_back(entry);
      } else if (ours != variables_.end() && value == ValueOf(ours->second)) {
        report_.Taken(of, {absl::StrCat(kTo, ".spec.trainer.env"), name});
      } else {
        report_.LeftOut(of, absl::StrCat(name, " is ", value,
                                         ": the program must read KUBEFLOW_TRAINER_OPT_… instead"));
      }
    }
    trainer["env"] = std::move(kept);
  }

  static std::string TextOf(const OrderedJson& entry, const char* key) {
    const bool text = entry.is_object() && entry.contains(key) && entry[key].is_string();
    return text ? entry[key].get<std::string>() : "";
  }

  std::string Expanded(const std::string& text) const {
    std::string expanded = text;
    for (const std::string& name : trial::ReferencedIn(text)) {
      const auto bound = references_.find(name);
      if (bound == references_.end() || trial::IsMetadataReference(bound->second)) continue;
      expanded = absl::StrReplaceAll(
          expanded, {{ValueOf(name), absl::StrCat("$(", JobVariable(bound->second), ")")}});
    }
    return expanded;
  }

  // What is left of references is where nothing is expanded.
  void Check(const OrderedJson& tree, const Place& place) {
    if (tree.is_string()) {
      for (const std::string& name : trial::ReferencedIn(tree.get<std::string>())) {
        report_.Error(place, absl::StrCat("cannot cross: ", ValueOf(name), " stands where no ",
                                          "environment is expanded: only trainer.command and args ",
                                          "can have a parameter"));
      }
    }
    if (!tree.is_structured()) return;
    for (const auto& [key, value] : tree.items()) {
      Check(value,
            {tree.is_object() ? experiment::ChildPath(place.path, key) : place.path, place.mark});
    }
  }

  Report& report_;
  std::map<std::string, std::string> references_, variables_;  // whose value it is, by name
};

}  // namespace

OrderedJson WriteTrainJob(const v1::ExperimentSpec& spec, Fields& fields, Report& report) {
  return TrainJobWriter(spec, report).Run(fields);
}

}  // namespace shirabe::convert
