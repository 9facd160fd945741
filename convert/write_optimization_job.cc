// An Experiment as an OptimizationJob of Kubeflow's Trainer. Its fields are read one by one, as a
// file of another system is: what crosses, what crosses in an annotation that Shirabe alone reads,
// and what does not.
#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "convert/fields.h"
#include "convert/optimization_job.h"
#include "convert/write_train_job.h"
#include "experiment/spec/parse_spec.h"

namespace shirabe::convert {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr char kExperiment[] = "an Experiment";
constexpr char kOnlyShirabe[] = "Shirabe reads it; upstream's controller does not";

// All values of a range with steps, or of few whole numbers; nullopt if they are too many.
std::optional<std::vector<std::string>> ValuesOf(const v1::ParameterSpec& parameter) {
  const v1::FeasibleSpace& space = parameter.feasible_space();
  const bool whole = parameter.parameter_type() == v1::INT;
  if (!space.has_step() && !whole) return std::nullopt;
  const double step = space.has_step() ? space.step() : 1;
  const double count = std::floor((space.max() - space.min()) / step + 1e-9) + 1;
  if (!(count <= kMaxJobChoices)) return std::nullopt;
  std::vector<std::string> values;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const double value = space.min() + i * step;
    values.push_back(FormatNumber(whole ? std::round(value) : value));
  }
  return values;
}

class JobWriter {
 public:
  JobWriter(const YamlNode& root, const v1::Experiment& experiment)
      : spec_(experiment.spec()),
        root_(&root, {"", root.mark}, &report_),
        fields_(root_.Child("spec")) {}

  Conversion Run() {
    for (const char* key : {"apiVersion", "kind"}) root_.Find(key);
    WriteMetadata();
    WriteObjective();
    WriteParameters();
    WriteAlgorithm();
    WriteCounts();
    WriteStopping();
    job_["trainJobTemplate"] = WriteTrainJob(spec_, fields_, report_);
    LeaveOutTheRest();
    if (!annotations_.empty()) annotations_[kJobManagedBy] = kJobManager;
    for (const auto& [key, value] : annotations_.items()) metadata_["annotations"][key] = value;
    Conversion written;
    written.format = "experiment";
    written.object = {{"apiVersion", kTrainerVersion},
                      {"kind", kOptimizationJob},
                      {"metadata", metadata_},
                      {"spec", job_}};
    report_.Sort(written);
    return written;
  }

 private:
  void WriteMetadata() {
    Fields metadata = root_.Child("metadata");
    for (const char* key : {"name", "namespace"}) {
      const auto text = metadata.Text(key);
      if (!text) continue;
      metadata_[key] = *text;
      report_.Taken(metadata.At(key), {absl::StrCat("metadata.", key), *text});
    }
    for (const char* key : {"labels", "annotations"}) {
      Fields texts = metadata.Child(key);
      for (const auto& [name, value] : metadata.Pairs(key)) {
        if (absl::StartsWith(name, "shirabe.dev/")) {
          report_.LeftOut(texts.At(name), "is of that object");
        } else {
          metadata_[key][name] = value;
          report_.Taken(texts.At(name), {absl::StrCat("metadata.", key), name});
        }
      }
    }
    metadata.LeaveOut({"uid", "resourceVersion", "generation", "creationTimestamp", "generateName",
                       "selfLink", "finalizers", "ownerReferences", "managedFields"},
                      "is of that object");
    metadata.Finish(kExperiment);
  }

  void WriteObjective() {
    Fields objective = fields_.Child("objective");
    const v1::ObjectiveSpec& from = spec_.objective();
    const std::string& metric = from.objective_metric_name();
    const Place place = objective.At("objectiveMetricName");
    objective.Find("objectiveMetricName");
    CheckText(place, metric);
    const std::string path = "spec.objectives[0]";
    const bool latest = std::any_of(
        from.metric_strategies().begin(), from.metric_strategies().end(),
        [&](const auto& one) { return one.name() == metric && one.value() == v1::LATEST; });
    if (latest) {
      report_.Taken(place, {path + ".metric", metric});
    } else {
      report_.Changed(place, {path + ".metric", metric},
                      "there the last value that a trial reports counts");
    }
    const std::string direction = from.type() == v1::MAXIMIZE ? "Maximize" : "Minimize";
    objective.Find("type");
    report_.Taken(objective.At("type"), {path + ".direction", direction});
    job_["objectives"] = OrderedJson::array({{{"metric", metric}, {"direction", direction}}});
    objective.LeaveOut({"goal"}, "there a search ends with its trials");
    objective.LeaveOut({"additionalMetricNames"}, "there all that a trial reports is recorded");
    objective.LeaveOut({"metricStrategies"}, "there the last value of a trial counts");
    objective.Finish(kExperiment);
  }

  void CheckText(const Place& place, const std::string& text) {
    if (!text.empty() && text.size() <= kMaxJobText) return;
    report_.Error(place, absl::StrCat("cannot cross: ", Quoted(text), " has ", text.size(),
                                      " characters, and there 1 to ", kMaxJobText, " are allowed"));
  }

  void WriteParameters() {
    std::vector<Fields> items = fields_.Items("parameters");
    if (items.size() > kMaxJobParameters) {
      report_.Error(fields_.At("parameters"),
                    absl::StrCat("cannot cross: ", items.size(), " parameters are more than 100"));
    }
    job_["parameters"] = OrderedJson::array();
    for (size_t i = 0; i < items.size() && !report_.full(); ++i) {
      const v1::ParameterSpec& parameter = spec_.parameters(static_cast<int>(i));
      const std::string path = experiment::ItemPath("spec.parameters", static_cast<int>(i));
      items[i].Find("name");
      CheckText(items[i].At("name"), parameter.name());
      const std::string why = WhyNoVariable(parameter.name());
      if (!why.empty()) report_.Error(items[i].At("name"), "cannot cross: " + why);
      report_.Taken(items[i].At("name"), {path + ".name", parameter.name()});
      Fields space = items[i].Child("feasibleSpace");
      job_["parameters"].push_back(
          {{"name", parameter.name()}, {"searchSpace", SpaceOf(parameter, items[i], space, path)}});
      space.Finish(kExperiment);
      items[i].Finish(kExperiment);
    }
  }

  OrderedJson SpaceOf(const v1::ParameterSpec& parameter, Fields& item, Fields& space,
                      const std::string& path) {
    const v1::FeasibleSpace& from = parameter.feasible_space();
    const v1::ParameterType type = parameter.parameter_type();
    item.Find("parameterType");
    for (const char* key : {"min", "max", "step", "list", "distribution"}) space.Find(key);
    std::vector<std::string> choices(from.list().begin(), from.list().end());
    if (type == v1::CATEGORICAL || type == v1::DISCRETE) {
      const Target target{path + ".searchSpace.categorical.choices", absl::StrJoin(choices, ", ")};
      if (type == v1::CATEGORICAL) report_.Taken(space.At("list"), target);
      if (type == v1::DISCRETE) {
        report_.Changed(space.At("list"), target, "numbers have no order as choices");
      }
      return Choices(space.At("list"), choices);
    }
    const auto values = ValuesOf(parameter);
    if (from.has_step() || from.min() >= from.max()) {
      if (values || from.min() >= from.max()) {
        choices = values.value_or(std::vector<std::string>{FormatNumber(from.min())});
        report_.Changed(space.At(from.has_step() ? "step" : "min"),
                        {path + ".searchSpace.categorical.choices", absl::StrJoin(choices, ", ")},
                        "numbers have no order as choices");
        return Choices(space.place(), choices);
      }
      report_.LeftOut(space.At("step"), "there are no steps there: all of the range is tried");
    }
    return Range(parameter, item, space, path);
  }

  OrderedJson Choices(const Place& place, const std::vector<std::string>& choices) {
    if (choices.size() > kMaxJobChoices) {
      report_.Error(place, absl::StrCat("cannot cross: ", choices.size(),
                                        " values are more than 100 choices: list fewer"));
    }
    for (const std::string& choice : choices) CheckText(place, choice);
    return {{"categorical", {{"choices", choices}}}};
  }

  OrderedJson Range(const v1::ParameterSpec& parameter, Fields& item, Fields& space,
                    const std::string& path) {
    const v1::FeasibleSpace& from = parameter.feasible_space();
    all_choices_ = false;
    const bool normal = from.distribution() == v1::NORMAL || from.distribution() == v1::LOG_NORMAL;
    const bool log =
        from.distribution() == v1::LOG_UNIFORM || from.distribution() == v1::LOG_NORMAL;
    const std::string kind = log ? "logUniform" : "uniform";
    const std::string to = absl::StrCat(path, ".searchSpace.", kind);
    const std::string type = parameter.parameter_type() == v1::INT ? "Int" : "Float";
    report_.Taken(item.At("parameterType"), {to + ".type", type});
    if (normal) {
      report_.Changed(space.At("distribution"), {to}, "all of the range is as likely there");
    } else if (space.Has("distribution")) {
      report_.Taken(space.At("distribution"), {to});
    }
    OrderedJson made = {{"min", FormatNumber(from.min())}, {"max", FormatNumber(from.max())}};
    for (const char* key : {"min", "max"}) {
      report_.Taken(space.At(key), {absl::StrCat(to, ".", key), made[key].get<std::string>()});
    }
    made["type"] = type;
    return {{kind, made}};
  }

  void WriteAlgorithm() {
    Fields algorithm = fields_.Child("algorithm");
    const std::string& name = spec_.algorithm().algorithm_name();
    for (const char* key : {"algorithmName", "algorithmSettings"}) algorithm.Find(key);
    const Place place = fields_.Has("algorithm") ? algorithm.At("algorithmName") : fields_.place();
    const bool grid = name == "grid" && all_choices_;
    OrderedJson& search =
        job_["searchAlgorithm"] = {{grid ? "grid" : "random", OrderedJson::object()}};
    if (grid || name == "random") {
      report_.Taken(place, {"spec.searchAlgorithm", name});
    } else {
      annotations_[kJobAlgorithm] = name;
      report_.Changed(place, {absl::StrCat("metadata.annotations[\"", kJobAlgorithm, "\"]"), name},
                      absl::StrCat(kOnlyShirabe, ": it searches at random",
                                   name == "grid" ? ", since a grid has choices alone there" : ""));
    }
    std::vector<std::string> others;
    for (const v1::Setting& setting : spec_.algorithm().algorithm_settings()) {
      int64_t seed = 0;
      if (setting.name() == "random_state" && !grid && ParseSeed(setting.value(), seed)) {
        search["random"]["seed"] = seed;
      } else {
        others.push_back(absl::StrCat(setting.name(), "=", setting.value()));
      }
    }
    WriteSettings(algorithm.At("algorithmSettings"), kJobAlgorithmSettings, others);
    if (algorithm.Has("algorithmSettings") && others.empty()) {
      report_.Taken(algorithm.At("algorithmSettings"), {"spec.searchAlgorithm"});
    }
    algorithm.Finish(kExperiment);
  }

  static bool ParseSeed(const std::string& text, int64_t& seed) {
    const auto number = ParseNumber(text);
    if (!number || std::abs(*number) > kMaxExactInteger || *number != std::floor(*number)) {
      return false;
    }
    seed = static_cast<int64_t>(*number);
    return true;
  }

  void WriteSettings(const Place& place, const char* annotation,
                     const std::vector<std::string>& settings) {
    if (settings.empty()) return;
    const std::string text = absl::StrJoin(settings, ", ");
    const bool plain = std::none_of(settings.begin(), settings.end(), [](const std::string& one) {
      return one.find(',') != std::string::npos;
    });
    if (!plain) {
      return report_.LeftOut(place, "a setting with a comma in it has no place in an annotation");
    }
    annotations_[annotation] = text;
    report_.Changed(place, {absl::StrCat("metadata.annotations[\"", annotation, "\"]"), text},
                    kOnlyShirabe);
  }

  void WriteCounts() {
    for (const char* key : {"maxTrialCount", "parallelTrialCount", "maxFailedTrialCount"}) {
      fields_.Find(key);
    }
    const int trials = spec_.has_max_trial_count() ? spec_.max_trial_count() : kMaxJobTrials;
    const int kept = std::min(trials, kMaxJobTrials);
    job_["numTrials"] = kept;
    const Target target{"spec.numTrials", absl::StrCat(kept)};
    if (!spec_.has_max_trial_count()) {
      report_.Changed(fields_.place(), target, "there a search has a number of trials");
    } else if (trials > kept) {
      annotations_[kJobTrials] = absl::StrCat(trials);
      report_.Changed(
          fields_.At("maxTrialCount"), target,
          absl::StrCat("the annotation ", kJobTrials, " says ", trials, ": ", kOnlyShirabe));
    } else {
      report_.Taken(fields_.At("maxTrialCount"), target);
    }
    const int parallel = std::min(spec_.parallel_trial_count(), kept);
    job_["parallelTrials"] = parallel;
    if (fields_.Has("parallelTrialCount")) {
      const Place place = fields_.At("parallelTrialCount");
      const Target to{"spec.parallelTrials", absl::StrCat(parallel)};
      if (parallel == spec_.parallel_trial_count()) report_.Taken(place, to);
      if (parallel != spec_.parallel_trial_count()) {
        report_.Changed(place, to, "there at most as many as numTrials");
      }
    }
    if (!spec_.has_max_failed_trial_count()) return;
    const std::string failed = absl::StrCat(spec_.max_failed_trial_count());
    annotations_[kJobFailures] = failed;
    report_.Changed(fields_.At("maxFailedTrialCount"),
                    {absl::StrCat("metadata.annotations[\"", kJobFailures, "\"]"), failed},
                    kOnlyShirabe);
  }

  void WriteStopping() {
    if (!fields_.Has("earlyStopping")) return;
    Fields stopping = fields_.Child("earlyStopping");
    for (const char* key : {"algorithmName", "algorithmSettings"}) stopping.Find(key);
    const std::string& name = spec_.early_stopping().algorithm_name();
    annotations_[kJobStopping] = name;
    report_.Changed(stopping.At("algorithmName"),
                    {absl::StrCat("metadata.annotations[\"", kJobStopping, "\"]"), name},
                    kOnlyShirabe);
    std::vector<std::string> settings;
    for (const v1::Setting& setting : spec_.early_stopping().algorithm_settings()) {
      settings.push_back(absl::StrCat(setting.name(), "=", setting.value()));
    }
    WriteSettings(stopping.At("algorithmSettings"), kJobStoppingSettings, settings);
    stopping.Finish(kExperiment);
  }

  void LeaveOutTheRest() {
    report_.Changed(
        fields_.Has("metricsCollectorSpec") ? fields_.At("metricsCollectorSpec") : fields_.place(),
        {"spec.objectives[0].metric"},
        "there metrics are what the program reports to Trainer (KEP-2779); Shirabe "
        "reads its log as well");
    fields_.Find("metricsCollectorSpec");
    fields_.LeaveOut({"resumePolicy"}, "there a search that has ended does not go on");
    if (fields_.Find("nasConfig") != nullptr) {
      report_.Error(fields_.At("nasConfig"), "cannot cross: there is no architecture search there");
    }
    Fields additions = fields_.Child("shirabe");
    for (const std::string& key : additions.Keys()) {
      if (additions.Find(key) == nullptr) continue;
      report_.LeftOut(additions.At(key), "is Shirabe's own, and has no place there");
    }
    fields_.Finish(kExperiment);
    root_.LeaveOut({"status"}, "what has happened is no part of it");
    root_.Finish(kExperiment);
  }

  const v1::ExperimentSpec& spec_;
  Report report_;
  Fields root_, fields_;
  bool all_choices_ = true;
  OrderedJson metadata_ = OrderedJson::object(), job_ = OrderedJson::object();
  OrderedJson annotations_ = OrderedJson::object();
};

}  // namespace

Conversion WriteOptimizationJob(std::string_view text) {
  std::vector<experiment::ParsedExperiment> parsed = experiment::ParseExperiments(text);
  Conversion failed;
  failed.findings = parsed[0].findings;
  if (experiment::HasErrors(failed.findings)) return failed;
  const std::vector<YamlDocument> documents = ParseYaml(text);
  if (parsed.size() != 1 || documents.size() != 1) {
    failed.findings.push_back({false, "", "a second document: give each a file of its own", 1, 1});
    return failed;
  }
  return JobWriter(documents[0].root, parsed[0].experiment).Run();
}

}  // namespace shirabe::convert
