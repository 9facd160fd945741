// OptimizationJobs of Kubeflow's Trainer, as kubectl applies them and the API server has them:
//   {metadata, spec: {objectives: [{metric, direction}], searchAlgorithm: {random: {seed}} |
//   {grid},
//    parameters: [{name, searchSpace: {uniform | logUniform: {min, max, type}} | {categorical:
//    {choices}}}], numTrials, parallelTrials, trainJobTemplate: {metadata, spec}}}
#include "convert/optimization_job.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"
#include "convert/readers.h"

namespace shirabe::convert {
namespace {

constexpr char kTitle[] = "an OptimizationJob";
constexpr char kOurPrefix[] = "shirabe.dev/";
constexpr char kKubectls[] = "kubectl.kubernetes.io/last-applied-configuration";

class OptimizationJobReader {
 public:
  explicit OptimizationJobReader(const Reading& reading)
      : spec_(*reading.experiment.mutable_spec()),
        reading_(reading),
        report_(reading.report),
        root_(&reading.root, {"", reading.root.mark}, &report_),
        metadata_(root_.Child("metadata")),
        annotations_(metadata_.Child("annotations")) {}

  void Run() {
    root_.Find("kind");
    const std::string version = root_.Text("apiVersion").value_or("");
    if (version != kTrainerVersion) {
      report_.Error(root_.At("apiVersion"),
                    absl::StrCat(Quoted(version), " is not known: write ", kTrainerVersion));
    }
    ReadMetadata();
    if (!root_.Has("spec")) report_.Error(root_.place(), "spec is required: what to tune, and how");
    Fields spec = root_.Child("spec");
    ReadObjectives(spec);
    std::vector<Fields> parameters = spec.Items("parameters");
    if (parameters.empty() || parameters.size() > kMaxJobParameters) {
      report_.Error(spec.At("parameters"),
                    absl::StrCat("has ", parameters.size(), " entries: give 1 to ",
                                 kMaxJobParameters, " parameters to tune"));
      parameters.clear();
    }
    for (Fields& parameter : parameters) ReadParameter(parameter);
    ReadSearch(spec);
    ReadTrials(spec);
    ReadStopping();
    ReadTrainJobTemplate(reading_, spec);
    spec.Finish(kTitle);
    root_.LeaveOut({"status"}, "what has happened is no part of an experiment");
    root_.Finish(kTitle);
  }

 private:
  void ReadMetadata() {
    TakeName(metadata_, "name", reading_);
    v1::ObjectMeta& metadata = *reading_.experiment.mutable_metadata();
    if (const auto ns = metadata_.Text("namespace")) {
      metadata.set_namespace_(*ns);
      report_.Taken(metadata_.At("namespace"), {"metadata.namespace", *ns});
    }
    for (const auto& [name, value] : metadata_.Pairs("labels")) {
      (*metadata.mutable_labels())[name] = value;
    }
    if (metadata_.Has("labels")) report_.Taken(metadata_.At("labels"), {"metadata.labels"});
    for (const std::string& key : annotations_.Keys()) ReadAnnotation(key);
    metadata_.LeaveOut(
        {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
         "ownerReferences", "finalizers", "selfLink", "generateName"},
        "is of that object");
    metadata_.Finish(kTitle);
  }

  // Those that say how to search are read with what they are about.
  void ReadAnnotation(const std::string& key) {
    static const std::vector<std::string> known = {
        kJobManagedBy, kJobAlgorithm, kJobAlgorithmSettings, kJobTrials,
        kJobFailures,  kJobStopping,  kJobStoppingSettings};
    const Place place = annotations_.At(key);
    if (key == kJobManagedBy) {
      const std::string manager = annotations_.Text(key).value_or("");
      if (manager == kJobManager) return report_.Taken(place, {"kind", "Experiment"});
      return report_.LeftOut(place, absl::StrCat(Quoted(manager), " is not ", kJobManager));
    }
    if (std::find(known.begin(), known.end(), key) != known.end()) return;
    if (key == kKubectls) return report_.LeftOut(place, "is kubectl's own");
    if (key == kConvertedFrom || !absl::StartsWith(key, kOurPrefix)) {
      const auto text = annotations_.Text(key);
      if (text && key != kConvertedFrom) {
        (*reading_.experiment.mutable_metadata()->mutable_annotations())[key] = *text;
      }
      return report_.Taken(place, {"metadata.annotations"});
    }
    const auto nearest = Nearest(key, known);
    report_.Error(place, nearest ? absl::StrCat("is not known; did you mean ", *nearest, "?")
                                 : absl::StrCat("is not known: one of ", absl::StrJoin(known, ", "),
                                                ", or leave it out"));
  }

  void ReadObjectives(Fields& spec) {
    std::vector<Fields> objectives = spec.Items("objectives");
    if (objectives.size() != 1) {
      report_.Error(spec.At("objectives"),
                    absl::StrCat("has ", objectives.size(), " entries: give exactly one"));
    }
    if (objectives.empty()) return;
    Fields& objective = objectives[0];
    const std::string metric = ReadName(objective, "metric");
    const bool maximize =
        objective.Word("direction", {"Maximize", "Minimize"}).value_or("Minimize") == "Maximize";
    spec_.mutable_objective()->set_objective_metric_name(metric);
    spec_.mutable_objective()->set_type(maximize ? v1::MAXIMIZE : v1::MINIMIZE);
    SetStrategy(v1::LATEST, *spec_.mutable_objective());
    report_.Taken(objective.At("metric"), {"spec.objective.objectiveMetricName", metric});
    if (objective.Has("direction")) {
      report_.Taken(objective.At("direction"),
                    {"spec.objective.type", maximize ? "maximize" : "minimize"});
    }
    objective.Finish(kTitle);
  }

  // A text of 1 to 64 characters.
  std::string ReadName(Fields& fields, const char* key) {
    const std::string text = fields.Text(key).value_or("");
    if (text.empty()) report_.Error(fields.At(key), "is required");
    CheckLength(fields.At(key), text);
    return text;
  }

  void CheckLength(const Place& place, const std::string& text) {
    if (text.size() <= kMaxJobText) return;
    report_.Error(place, absl::StrCat("has ", text.size(), " characters: at most ", kMaxJobText));
  }

  void ReadParameter(Fields& fields) {
    if (report_.full()) return;
    const std::string name = ReadName(fields, "name");
    AddParameter(name, spec_);
    report_.Taken(fields.At("name"), {LastParameterPath(spec_) + ".name", name});
    const std::string why = WhyNoVariable(name);
    if (!why.empty()) report_.Error(fields.At("name"), absl::StrCat(Quoted(name), " ", why));
    Fields space = fields.Child("searchSpace");
    int kinds = 0;
    for (const char* key : {"uniform", "logUniform", "categorical"}) {
      if (space.Find(key) == nullptr) continue;
      ++kinds;
      Fields values = space.Child(key);
      if (std::string(key) == "categorical") {
        ReadChoices(values);
      } else {
        ReadRange(values, std::string(key) == "logUniform");
      }
      values.Finish(kTitle);
    }
    if (kinds != 1) {
      report_.Error(
          fields.At("searchSpace"),
          absl::StrCat("has ", kinds, " of uniform, logUniform and categorical: give one"));
    }
    space.Finish(kTitle);
    fields.Finish(kTitle);
  }

  void ReadRange(Fields& values, bool log) {
    v1::ParameterSpec& parameter = *spec_.mutable_parameters(spec_.parameters_size() - 1);
    const std::string path = LastParameterPath(spec_);
    const bool whole = values.Word("type", {"Int", "Float"}).value_or("Float") == "Int";
    parameter.set_parameter_type(whole ? v1::INT : v1::DOUBLE);
    if (values.Has("type")) {
      report_.Taken(values.At("type"), {path + ".parameterType", whole ? "int" : "double"});
    }
    v1::FeasibleSpace& space = *parameter.mutable_feasible_space();
    const auto min = ReadBound(values, "min"), max = ReadBound(values, "max");
    if (min) space.set_min(*min);
    if (max) space.set_max(*max);
    if (min && max && *min >= *max) {
      report_.Error(values.At("min"), absl::StrCat(FormatNumber(*min), " is not less than max ",
                                                   FormatNumber(*max), ": lower it"));
    }
    if (!log)
      return report_.Taken(values.place(), {path + ".feasibleSpace.distribution", "uniform"});
    space.set_distribution(v1::LOG_UNIFORM);
    report_.Taken(values.place(), {path + ".feasibleSpace.distribution", "logUniform"});
    if (min && *min <= 0) {
      report_.Error(values.At("min"),
                    absl::StrCat(FormatNumber(*min), " is not greater than 0, as logUniform asks"));
    }
  }

  std::optional<double> ReadBound(Fields& values, const char* key) {
    if (!values.Has(key)) report_.Error(values.At(key), "is required");
    const auto number = values.Number(key);
    if (!number) return std::nullopt;
    if (const YamlNode* text = values.Find(key)) CheckLength(values.At(key), text->text);
    report_.Taken(values.At(key), {absl::StrCat(LastParameterPath(spec_), ".feasibleSpace.", key),
                                   FormatNumber(*number)});
    return number;
  }

  void ReadChoices(Fields& values) {
    v1::ParameterSpec& parameter = *spec_.mutable_parameters(spec_.parameters_size() - 1);
    parameter.set_parameter_type(v1::CATEGORICAL);
    const std::vector<std::string> choices = values.Texts("choices");
    const Place place = values.At("choices");
    if (choices.empty() || choices.size() > kMaxJobChoices) {
      report_.Error(place,
                    absl::StrCat("has ", choices.size(), " texts: give 1 to ", kMaxJobChoices));
    }
    for (const std::string& choice : choices) {
      CheckLength(place, choice);
      parameter.mutable_feasible_space()->add_list(choice);
    }
    report_.Taken(place,
                  {LastParameterPath(spec_) + ".feasibleSpace.list", absl::StrJoin(choices, ", ")});
  }

  void ReadSearch(Fields& spec) {
    Fields search = spec.Child("searchAlgorithm");
    const bool grid = search.Find("grid") != nullptr, random = search.Find("random") != nullptr;
    if (spec.Has("searchAlgorithm") && grid == random) {
      report_.Error(search.place(), grid ? "has random and grid: give one"
                                         : "has neither random nor grid: give one");
    }
    const std::string plain = grid ? "grid" : "random";
    const auto named = annotations_.Text(kJobAlgorithm);
    v1::AlgorithmSpec& algorithm = *spec_.mutable_algorithm();
    algorithm.set_algorithm_name(named.value_or(plain));
    const Target target{"spec.algorithm.algorithmName", algorithm.algorithm_name()};
    if (named) report_.Taken(annotations_.At(kJobAlgorithm), target);
    if (search.Has(plain) && named && *named != plain) {
      report_.Changed(search.At(plain), {target.path, *named},
                      absl::StrCat("the annotation ", kJobAlgorithm, " names another"));
    } else if (search.Has(plain)) {
      report_.Taken(search.At(plain), target);
    }
    Fields fields = search.Child("random");
    if (const YamlNode* seed = fields.Find("seed")) {
      int64_t number = seed->integer.value_or(0);
      if (!seed->integer && !absl::SimpleAtoi(seed->text, &number)) {
        report_.Error(fields.At("seed"), "must be a whole number, not " + Describe(*seed));
      }
      const int64_t state = number < 0 ? -(number + 1) : number;
      const Target to{"spec.algorithm.algorithmSettings", absl::StrCat(state)};
      AddSetting("random_state", to.value, algorithm);
      if (number < 0) {
        report_.Changed(fields.At("seed"), to, "a random_state is not below 0");
      } else {
        report_.Taken(fields.At("seed"), to);
      }
    }
    fields.Finish(kTitle);
    search.Child("grid").Finish(kTitle);
    search.Finish(kTitle);
    ReadSettings(kJobAlgorithmSettings, "spec.algorithm.algorithmSettings", algorithm);
  }

  template <class Algorithm>
  static void AddSetting(const std::string& name, const std::string& value, Algorithm& algorithm) {
    v1::Setting& setting = *algorithm.add_algorithm_settings();
    setting.set_name(name);
    setting.set_value(value);
  }

  // "a=1, b=2"
  template <class Algorithm>
  void ReadSettings(const char* annotation, const std::string& path, Algorithm& algorithm) {
    const auto text = annotations_.Text(annotation);
    if (!text) return;
    for (const absl::string_view part : absl::StrSplit(*text, ',')) {
      const std::pair<absl::string_view, absl::string_view> setting =
          absl::StrSplit(part, absl::MaxSplits('=', 1));
      const std::string name(absl::StripAsciiWhitespace(setting.first));
      if (name.empty() || !absl::StrContains(part, '=')) {
        return report_.Error(annotations_.At(annotation),
                             absl::StrCat(Quoted(std::string(part)),
                                          " is no setting: write NAME=VALUE, NAME=VALUE"));
      }
      AddSetting(name, std::string(absl::StripAsciiWhitespace(setting.second)), algorithm);
    }
    report_.Taken(annotations_.At(annotation), {path, *text});
  }

  void ReadTrials(Fields& spec) {
    const int trials = spec.Count("numTrials", 1).value_or(1);
    if (trials > kMaxJobTrials) {
      report_.Error(spec.At("numTrials"),
                    absl::StrCat(trials, " is more than ", kMaxJobTrials, ": the annotation ",
                                 kJobTrials, " takes more"));
    }
    const auto more = annotations_.Count(kJobTrials, 1);
    const Target target{"spec.maxTrialCount", absl::StrCat(more.value_or(trials))};
    spec_.set_max_trial_count(more.value_or(trials));
    if (more) report_.Taken(annotations_.At(kJobTrials), target);
    if (spec.Has("numTrials") && more) {
      report_.Changed(spec.At("numTrials"), target,
                      absl::StrCat("the annotation ", kJobTrials, " says another number"));
    } else if (spec.Has("numTrials")) {
      report_.Taken(spec.At("numTrials"), target);
    }
    const int parallel = spec.Count("parallelTrials", 1).value_or(1);
    if (parallel > trials) {
      report_.Error(spec.At("parallelTrials"),
                    absl::StrCat(parallel, " is more than numTrials ", trials, ": lower it"));
    }
    spec_.set_parallel_trial_count(parallel);
    if (spec.Has("parallelTrials")) {
      report_.Taken(spec.At("parallelTrials"), {"spec.parallelTrialCount", absl::StrCat(parallel)});
    }
    const auto failed = annotations_.Count(kJobFailures, 0);
    if (!failed) return;
    spec_.set_max_failed_trial_count(*failed);
    report_.Taken(annotations_.At(kJobFailures),
                  {"spec.maxFailedTrialCount", absl::StrCat(*failed)});
  }

  void ReadStopping() {
    const auto rule = annotations_.Text(kJobStopping);
    if (!rule) {
      if (!annotations_.Has(kJobStoppingSettings)) return;
      return report_.Error(
          annotations_.At(kJobStoppingSettings),
          absl::StrCat("are settings of a rule that none names: add ", kJobStopping));
    }
    spec_.mutable_early_stopping()->set_algorithm_name(*rule);
    report_.Taken(annotations_.At(kJobStopping), {"spec.earlyStopping.algorithmName", *rule});
    ReadSettings(kJobStoppingSettings, "spec.earlyStopping.algorithmSettings",
                 *spec_.mutable_early_stopping());
  }

  v1::ExperimentSpec& spec_;
  const Reading& reading_;
  Report& report_;
  Fields root_, metadata_, annotations_;
};

}  // namespace

void ReadOptimizationJob(const Reading& reading) { OptimizationJobReader(reading).Run(); }

}  // namespace shirabe::convert
