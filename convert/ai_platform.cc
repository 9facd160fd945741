// A job of Google's AI Platform Training, as `gcloud ai-platform jobs submit training --config`
// reads it and its API shows it:
//   {jobId, labels, trainingInput: {scaleTier, masterType, masterConfig: {imageUri,
//    acceleratorConfig: {count, type}}, region, jobDir, packageUris, pythonModule, args, …,
//    hyperparameters: {goal, hyperparameterMetricTag, algorithm, maxTrials, …, params: [{
//      parameterName, type, minValue, maxValue, categoricalValues, discreteValues, scaleType}]}}}
// A job without hyperparameters is one trial with one parameter of one value: its own name.
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "client/import_batch.h"
#include "convert/readers.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::convert {
namespace {

constexpr char kDefaultTag[] = "training/hptuning/metric";
constexpr char kAiPlatform[] = "AI Platform";

class JobReader {
 public:
  explicit JobReader(const Reading& reading)
      : spec_(*reading.experiment.mutable_spec()), reading_(reading), report_(reading.report) {}

  void Run() {
    Fields root(&reading_.root, {"", reading_.root.mark}, &report_);
    TakeName(root, "jobId", reading_);
    ReadLabels(root);
    root.LeaveOut({"createTime", "startTime", "endTime", "state", "errorMessage", "etag",
                   "trainingOutput", "predictionOutput", "jobPosition"},
                  "what has happened is no part of an experiment");
    if (root.Find("predictionInput") != nullptr) {
      report_.Error(root.At("predictionInput"),
                    "a job that predicts trains nothing: only trainingInput can be taken over");
    }
    Fields input = root.Child("trainingInput");
    if (!root.Has("trainingInput")) {
      report_.Error(root.At("trainingInput"), "is missing: it says what to train");
    }
    ReadSearch(input);
    ReadTrainingProgram(reading_, input, single_);
    input.Finish(kAiPlatform);
    root.Finish(kAiPlatform);
  }

 private:
  void ReadLabels(Fields& root) {
    auto& labels = *reading_.experiment.mutable_metadata()->mutable_labels();
    for (const auto& [name, value] : root.Pairs("labels")) {
      labels[name] = value;
      Place place = root.At("labels");
      place.path = experiment::ChildPath(place.path, name);
      report_.Taken(place, {experiment::ChildPath("metadata.labels", name), value});
    }
  }

  void ReadSearch(Fields& input) {
    if (!input.Has("hyperparameters")) return ReadSingle(input);
    Fields search = input.Child("hyperparameters");
    ReadObjective(search);
    ReadAlgorithm(search);
    ReadCounts(search);
    for (Fields& param : search.Items("params")) ReadParam(param);
    if (spec_.parameters_size() == 0) {
      report_.Error(search.At("params"), "is missing: give at least one parameter to tune");
    }
    search.Finish(kAiPlatform);
  }

  // One trial; that it has no metric is no failure of such a job.
  void ReadSingle(Fields& input) {
    input.Find("hyperparameters");
    single_ = true;
    v1::ParameterSpec& job = AddParameter("job", spec_);
    job.set_parameter_type(v1::CATEGORICAL);
    const std::string& name = reading_.experiment.metadata().name();
    job.mutable_feasible_space()->add_list(name.empty() ? reading_.options.name : name);
    spec_.mutable_objective()->set_type(v1::MAXIMIZE);
    spec_.mutable_objective()->set_objective_metric_name(kDefaultTag);
    spec_.mutable_algorithm()->set_algorithm_name("random");
    spec_.set_max_trial_count(1);
    spec_.set_parallel_trial_count(1);
    (*reading_.experiment.mutable_metadata()->mutable_annotations())[kConvertedFrom] = kSingleJob;
    report_.Changed(input.place(), {"spec.maxTrialCount", "1"},
                    "no hyperparameters: one trial, whose only parameter is the name of the job; a "
                    "metric is read where the program reports one");
  }

  void ReadObjective(Fields& search) {
    v1::ObjectiveSpec& objective = *spec_.mutable_objective();
    const auto goal = search.Word("goal", {"MAXIMIZE", "MINIMIZE", "GOAL_TYPE_UNSPECIFIED"});
    objective.set_type(goal == "MINIMIZE" ? v1::MINIMIZE : v1::MAXIMIZE);
    const std::string word = goal == "MINIMIZE" ? "minimize" : "maximize";
    if (goal) report_.Taken(search.At("goal"), {"spec.objective.type", word});
    const auto tag = search.Text("hyperparameterMetricTag");
    objective.set_objective_metric_name(tag.value_or(kDefaultTag));
    SetStrategy(v1::LATEST, objective);
    const Target target{"spec.objective.objectiveMetricName", objective.objective_metric_name()};
    const std::string how =
        "of a trial the last value counts; it is read from what cloudml-hypertune writes, or as "
        "NAME=VALUE in the output, not from summaries in jobDir";
    report_.Changed(tag ? search.At("hyperparameterMetricTag") : search.place(), target, how);
  }

  void ReadAlgorithm(Fields& search) {
    static const std::map<std::string, std::string> kNames = {
        {"ALGORITHM_UNSPECIFIED", "auto"},
        {"GRID_SEARCH", "grid"},
        {"RANDOM_SEARCH", "random"},
        {"POPULATION_BASED_TRAINING", "auto"},
        {"BAYESIAN_OPTIMIZATION", "bayesianoptimization"},
        {"RANDOM", "random"}};
    std::vector<std::string> words;
    for (const auto& [word, name] : kNames) words.push_back(word);
    const auto word = search.Word("algorithm", words);
    const std::string name = kNames.at(word.value_or("ALGORITHM_UNSPECIFIED"));
    spec_.mutable_algorithm()->set_algorithm_name(name);
    if (!word) return;
    const Target target{"spec.algorithm.algorithmName", name};
    if (*word == "POPULATION_BASED_TRAINING") {
      return report_.Changed(search.At("algorithm"), target,
                             "another search: pbt is here too, for programs that keep "
                             "checkpoints (shirabe explain pbt)");
    }
    if (*word == "BAYESIAN_OPTIMIZATION" || *word == "RANDOM") {
      return report_.Changed(search.At("algorithm"), target,
                             "no word of Google's, but one that is in use for it");
    }
    report_.Taken(search.At("algorithm"), target);
  }

  void ReadCounts(Fields& search) {
    const auto trials = search.Count("maxTrials", 0).value_or(0);
    spec_.set_max_trial_count(trials == 0 ? 1 : trials);
    TakeCount(search, "maxTrials", "spec.maxTrialCount", spec_.max_trial_count());
    const auto parallel = search.Count("maxParallelTrials", 0).value_or(0);
    spec_.set_parallel_trial_count(std::min(parallel == 0 ? 1 : parallel, spec_.max_trial_count()));
    TakeCount(search, "maxParallelTrials", "spec.parallelTrialCount", spec_.parallel_trial_count());
    if (const auto failed = search.Count("maxFailedTrials", 0); failed && *failed > 0) {
      spec_.set_max_failed_trial_count(*failed - 1);
      report_.Changed(search.At("maxFailedTrials"),
                      {"spec.maxFailedTrialCount", absl::StrCat(*failed - 1)},
                      "there the number that fails the job, here the last that does not");
    } else if (failed) {
      report_.Taken(search.At("maxFailedTrials"), {"spec.maxFailedTrialCount", "none"});
    }
    if (const auto stop = search.Flag("enableTrialEarlyStopping"); stop) {
      const Place place = search.At("enableTrialEarlyStopping");
      if (*stop) SetMedianStop(spec_);
      report_.Taken(place, {"spec.earlyStopping", *stop ? "medianstop" : "none"});
    }
    if (const auto previous = search.Text("resumePreviousJobId"); previous) {
      const std::string name = client::ExperimentNameFrom(*previous);
      spec_.mutable_shirabe()->mutable_warm_start()->add_experiments(name);
      report_.Changed(search.At("resumePreviousJobId"),
                      {"spec.shirabe.warmStart.experiments", name},
                      "a new experiment that learns from the earlier one's trials");
    }
  }

  void TakeCount(const Fields& search, const char* key, const char* path, int32_t count) {
    if (search.Has(key)) report_.Taken(search.At(key), {path, absl::StrCat(count)});
  }

  void ReadParam(Fields& param) {
    const auto name = param.Text("parameterName");
    if (!name) report_.Error(param.At("parameterName"), "is required: the name of the parameter");
    const auto type = param.Word("type", {"DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE"});
    if (!type && !param.Has("type")) {
      report_.Error(param.At("type"), "is required: DOUBLE, INTEGER, CATEGORICAL or DISCRETE");
    }
    v1::ParameterSpec& made = AddParameter(name.value_or(""), spec_);
    const std::string path = LastParameterPath(spec_);
    if (name) report_.Taken(param.At("parameterName"), {path + ".name", *name});
    const std::string given = type.value_or("DOUBLE");
    static const std::map<std::string, std::pair<v1::ParameterType, const char*>> kTypes = {
        {"DOUBLE", {v1::DOUBLE, "double"}},
        {"INTEGER", {v1::INT, "int"}},
        {"CATEGORICAL", {v1::CATEGORICAL, "categorical"}},
        {"DISCRETE", {v1::DISCRETE, "discrete"}}};
    made.set_parameter_type(kTypes.at(given).first);
    report_.Taken(param.At("type"), {path + ".parameterType", kTypes.at(given).second});
    ReadValues(param, given, made);
    const auto scale = param.Text("scaleType");
    if (scale) TakeScale(param.At("scaleType"), *scale, spec_, report_);
    param.Finish(kAiPlatform);
  }

  void ReadValues(Fields& param, const std::string& type, v1::ParameterSpec& made) {
    const std::string path = LastParameterPath(spec_) + ".feasibleSpace";
    v1::FeasibleSpace& space = *made.mutable_feasible_space();
    const bool ranged = type == "DOUBLE" || type == "INTEGER";
    if (ranged) {
      if (const auto min = param.Number("minValue")) {
        space.set_min(*min);
        report_.Taken(param.At("minValue"), {path + ".min", FormatNumber(*min)});
      }
      if (const auto max = param.Number("maxValue")) {
        space.set_max(*max);
        report_.Taken(param.At("maxValue"), {path + ".max", FormatNumber(*max)});
      }
      if (!space.has_min()) report_.Error(param.At("minValue"), "is required for type " + type);
      if (!space.has_max()) report_.Error(param.At("maxValue"), "is required for type " + type);
    }
    const std::string list = type == "CATEGORICAL" ? "categoricalValues" : "discreteValues";
    if (!ranged) {
      for (std::string& text : param.Texts(list)) space.add_list(std::move(text));
      if (space.list_size() == 0) report_.Error(param.At(list), "is required for type " + type);
      report_.Taken(param.At(list), {path + ".list", absl::StrJoin(space.list(), ", ")});
    }
    for (const char* other : {"minValue", "maxValue", "categoricalValues", "discreteValues"}) {
      if (param.Find(other) == nullptr) continue;
      const bool used = ranged ? absl::EndsWith(other, "Value") : other == list;
      if (!used) report_.LeftOut(param.At(other), "does not go with type " + type);
    }
  }

  v1::ExperimentSpec& spec_;
  const Reading& reading_;
  Report& report_;
  bool single_ = false;
};

}  // namespace

void ReadAiPlatform(const Reading& reading) { JobReader(reading).Run(); }

}  // namespace shirabe::convert
