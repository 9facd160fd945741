// Jobs of Vertex AI, as its API shows them and gcloud's --config has them:
//   HyperparameterTuningJob {displayName, studySpec: {metrics, parameters, algorithm, …},
//                            maxTrialCount, parallelTrialCount, maxFailedTrialCount, trialJobSpec}
//   CustomJob               {displayName, jobSpec: {workerPoolSpecs, scheduling, …}}, or that alone
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/number.h"
#include "convert/readers.h"

namespace shirabe::convert {
namespace {

constexpr char kVertex[] = "Vertex AI";

class VertexReader {
 public:
  explicit VertexReader(const Reading& reading)
      : spec_(*reading.experiment.mutable_spec()), reading_(reading), report_(reading.report) {}

  void Run() {
    Fields root(&reading_.root, {"", reading_.root.mark}, &report_);
    TakeName(root, "displayName", reading_);
    auto& labels = *reading_.experiment.mutable_metadata()->mutable_labels();
    for (const auto& [name, value] : root.Pairs("labels")) labels[name] = value;
    if (root.Has("labels")) report_.Taken(root.At("labels"), {"metadata.labels"});
    root.LeaveOut({"name", "createTime", "startTime", "endTime", "updateTime", "state", "error",
                   "trials", "webAccessUris"},
                  "what has happened is no part of an experiment");
    root.LeaveOut({"encryptionSpec"}, "means nothing outside of Google's cloud");
    if (root.Has("studySpec")) {
      ReadStudy(root);
    } else {
      ReadNoStudy(root);
    }
    ReadWorkers(reading_, root, !root.Has("studySpec"));
    root.Finish(kVertex);
  }

 private:
  void ReadNoStudy(const Fields& root) {
    v1::ParameterSpec& job = AddParameter("job", spec_);
    job.set_parameter_type(v1::CATEGORICAL);
    const std::string& name = reading_.experiment.metadata().name();
    job.mutable_feasible_space()->add_list(name.empty() ? reading_.options.name : name);
    spec_.mutable_objective()->set_type(v1::MAXIMIZE);
    spec_.mutable_objective()->set_objective_metric_name("metric");
    spec_.mutable_algorithm()->set_algorithm_name("random");
    spec_.set_max_trial_count(1);
    spec_.set_parallel_trial_count(1);
    (*reading_.experiment.mutable_metadata()->mutable_annotations())[kConvertedFrom] = kSingleJob;
    report_.Changed(root.place(), {"spec.maxTrialCount", "1"},
                    "no studySpec: one trial, whose only parameter is the name of the job");
  }

  void ReadStudy(Fields& root) {
    Fields study = root.Child("studySpec");
    ReadMetrics(study);
    ReadStrategy(study);
    const auto word =
        study.Word("algorithm", {"ALGORITHM_UNSPECIFIED", "GRID_SEARCH", "RANDOM_SEARCH"});
    const std::string name = word == "GRID_SEARCH"     ? "grid"
                             : word == "RANDOM_SEARCH" ? "random"
                                                       : "auto";
    spec_.mutable_algorithm()->set_algorithm_name(name);
    if (word) report_.Taken(study.At("algorithm"), {"spec.algorithm.algorithmName", name});
    for (Fields& parameter : study.Items("parameters")) ReadParameter(parameter);
    if (spec_.parameters_size() == 0) {
      report_.Error(study.At("parameters"), "is missing: give at least one parameter to tune");
    }
    ReadStopping(study);
    study.LeaveOut({"observationNoise"}, "the model learns the noise from the results");
    study.LeaveOut({"transferLearningConfig"},
                   "name earlier experiments in spec.shirabe.warmStart to learn from them");
    study.LeaveOut({"studyStoppingConfig"},
                   "spec.shirabe.limits and stopWhen have rules of their own");
    study.Finish(kVertex);
    ReadTrialCounts(root);
  }

  void ReadMetrics(Fields& study) {
    std::vector<Fields> metrics = study.Items("metrics");
    if (metrics.empty()) report_.Error(study.At("metrics"), "is missing: what to optimise");
    for (size_t i = 0; i < metrics.size() && !report_.full(); ++i) {
      const auto id = metrics[i].Text("metricId");
      const auto goal = metrics[i].Word("goal", {"MAXIMIZE", "MINIMIZE", "GOAL_TYPE_UNSPECIFIED"});
      const v1::ObjectiveType type = goal == "MINIMIZE" ? v1::MINIMIZE : v1::MAXIMIZE;
      if (!id) report_.Error(metrics[i].At("metricId"), "is required: the name of the metric");
      std::string path = "spec.objective";
      std::string name = "objectiveMetricName";
      if (i == 0) {
        spec_.mutable_objective()->set_objective_metric_name(id.value_or(""));
        spec_.mutable_objective()->set_type(type);
      } else {
        auto& further = *spec_.mutable_shirabe()->add_additional_objectives();
        further.set_metric_name(id.value_or(""));
        further.set_type(type);
        path = experiment::ItemPath("spec.shirabe.additionalObjectives", static_cast<int>(i) - 1);
        name = "metricName";
      }
      report_.Taken(metrics[i].At("metricId"), {absl::StrCat(path, ".", name), id.value_or("")});
      report_.Taken(metrics[i].At("goal"),
                    {path + ".type", type == v1::MINIMIZE ? "minimize" : "maximize"});
      metrics[i].LeaveOut({"safetyConfig"}, "spec.shirabe.constraints can bound metrics");
      metrics[i].Finish(kVertex);
    }
  }

  void ReadStrategy(Fields& study) {
    const auto word = study.Word(
        "measurementSelectionType",
        {"LAST_MEASUREMENT", "BEST_MEASUREMENT", "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED"});
    v1::ObjectiveSpec& objective = *spec_.mutable_objective();
    const bool best = word == "BEST_MEASUREMENT";
    SetStrategy(!best                              ? v1::LATEST
                : objective.type() == v1::MINIMIZE ? v1::MIN
                                                   : v1::MAX,
                objective);
    if (word) {
      report_.Taken(study.At("measurementSelectionType"),
                    {"spec.objective.metricStrategies", best ? "best" : "latest"});
    }
  }

  void ReadStopping(Fields& study) {
    for (const char* key : {"medianAutomatedStoppingSpec", "decayCurveStoppingSpec",
                            "convexAutomatedStoppingSpec", "convexStopConfig"}) {
      if (study.Find(key) == nullptr) continue;
      if (spec_.shirabe().additional_objectives_size() > 0) {
        report_.LeftOut(study.At(key), "with several metrics no trial is stopped early here");
        continue;
      }
      SetMedianStop(spec_);
      const Target target{"spec.earlyStopping.algorithmName", "medianstop"};
      Fields rule = study.Child(key);
      const bool median = std::string(key) == "medianAutomatedStoppingSpec";
      if (median && !rule.Flag("useElapsedDuration").value_or(false)) {
        report_.Taken(study.At(key), target);
      } else {
        report_.Changed(study.At(key), target,
                        median ? "trials are compared at the same step, not after the same time"
                               : "another rule: the median of the others at the same step");
      }
    }
  }

  void ReadTrialCounts(Fields& root) {
    const auto trials = root.Count("maxTrialCount", 1);
    spec_.set_max_trial_count(trials.value_or(1));
    if (trials)
      report_.Taken(root.At("maxTrialCount"), {"spec.maxTrialCount", absl::StrCat(*trials)});
    const auto parallel = root.Count("parallelTrialCount", 1);
    spec_.set_parallel_trial_count(std::min(parallel.value_or(1), spec_.max_trial_count()));
    if (parallel) {
      report_.Taken(root.At("parallelTrialCount"),
                    {"spec.parallelTrialCount", absl::StrCat(spec_.parallel_trial_count())});
    }
    const auto failed = root.Count("maxFailedTrialCount", 0);
    if (failed && *failed > 0) spec_.set_max_failed_trial_count(*failed - 1);
    if (failed) {
      report_.Changed(root.At("maxFailedTrialCount"), {"spec.maxFailedTrialCount"},
                      "there the number that fails the job (0: Google decides), here the last that "
                      "does not");
    }
  }

  void ReadParameter(Fields& fields) {
    if (report_.full()) return;
    const auto name = fields.Text("parameterId");
    if (!name) report_.Error(fields.At("parameterId"), "is required: the name of the parameter");
    AddParameter(name.value_or(""), spec_);
    const int index = spec_.parameters_size() - 1;
    const std::string path = LastParameterPath(spec_);
    report_.Taken(fields.At("parameterId"), {path + ".name", name.value_or("")});
    static const std::map<std::string, v1::ParameterType> kKinds = {
        {"doubleValueSpec", v1::DOUBLE},
        {"integerValueSpec", v1::INT},
        {"categoricalValueSpec", v1::CATEGORICAL},
        {"discreteValueSpec", v1::DISCRETE}};
    int kinds = 0;
    for (const auto& [key, type] : kKinds) {
      if (fields.Find(key) == nullptr) continue;
      ++kinds;
      spec_.mutable_parameters(index)->set_parameter_type(type);
      report_.Taken(fields.At(key), {path + ".parameterType"});
      Fields values = fields.Child(key);
      ReadVertexValues(values);
    }
    if (kinds != 1) {
      report_.Error(fields.place(),
                    absl::StrCat("has ", kinds, " of doubleValueSpec, integerValueSpec, ",
                                 "categoricalValueSpec and discreteValueSpec: give one"));
    }
    if (const auto scale = fields.Text("scaleType")) {
      TakeScale(fields.At("scaleType"), *scale, spec_, report_);
    }
    ReadChildren(fields, index);
    fields.Finish(kVertex);
  }

  void ReadVertexValues(Fields& values) {
    v1::FeasibleSpace& space =
        *spec_.mutable_parameters(spec_.parameters_size() - 1)->mutable_feasible_space();
    const std::string path = LastParameterPath(spec_) + ".feasibleSpace";
    if (const auto min = values.Number("minValue")) {
      space.set_min(*min);
      report_.Taken(values.At("minValue"), {path + ".min", FormatNumber(*min)});
    }
    if (const auto max = values.Number("maxValue")) {
      space.set_max(*max);
      report_.Taken(values.At("maxValue"), {path + ".max", FormatNumber(*max)});
    }
    for (std::string& text : values.Texts("values")) space.add_list(std::move(text));
    if (values.Has("values")) {
      report_.Taken(values.At("values"), {path + ".list", absl::StrJoin(space.list(), ", ")});
    }
    values.LeaveOut({"defaultValue"}, "name a whole point in spec.shirabe.start to try it first");
    values.Finish(kVertex);
  }

  // conditionalParameterSpecs: each has the values of its parent with which it exists.
  void ReadChildren(Fields& fields, int parent) {
    for (Fields& item : fields.Items("conditionalParameterSpecs")) {
      if (report_.full()) return;
      auto* condition = spec_.mutable_shirabe()->mutable_space()->add_conditions();
      auto& when = (*condition->mutable_when()->mutable_fields())[spec_.parameters(parent).name()];
      for (const char* key :
           {"parentCategoricalValues", "parentIntValues", "parentDiscreteValues"}) {
        if (item.Find(key) == nullptr) continue;
        Fields values = item.Child(key);
        const bool texts = std::string(key) == "parentCategoricalValues";
        for (const std::string& text : values.Texts("values")) {
          auto& value = *when.mutable_list_value()->add_values();
          const auto number = ParseNumber(text);
          if (texts || !number) value.set_string_value(text);
          if (!texts && number) value.set_number_value(*number);
        }
        report_.Taken(values.At("values"), {"spec.shirabe.space.conditions"});
        values.Finish(kVertex);
      }
      Fields child = item.Child("parameterSpec");
      condition->set_parameter(child.Text("parameterId").value_or(""));
      ReadParameter(child);
      item.Finish(kVertex);
    }
  }

  v1::ExperimentSpec& spec_;
  const Reading& reading_;
  Report& report_;
};

}  // namespace

void ReadVertex(const Reading& reading) { VertexReader(reading).Run(); }

}  // namespace shirabe::convert
