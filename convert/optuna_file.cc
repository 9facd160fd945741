// The search space of a study of Optuna, as its function distribution_to_json writes it:
//   {"lr": {"name": "FloatDistribution",
//           "attributes": {"low": 1e-5, "high": 0.1, "step": null, "log": true}}, …}
// A distribution may be such JSON within a text, too. Or a mapping with that as `distributions` or
// `search_space`, and what else is known of the study: study_name, direction or directions,
// metric_names, n_trials, n_jobs. There is no program in it: its trials are asked for and told.
#include <list>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/number.h"
#include "convert/readers.h"

namespace shirabe::convert {
namespace {

constexpr char kOptuna[] = "an Optuna study";

// As Optuna's older versions have them, too.
struct KnownDistribution {
  v1::ParameterType type;
  bool log = false;
};

const std::map<std::string, KnownDistribution>& Distributions() {
  static const std::map<std::string, KnownDistribution> known = {
      {"FloatDistribution", {v1::DOUBLE}},
      {"IntDistribution", {v1::INT}},
      {"CategoricalDistribution", {v1::CATEGORICAL}},
      {"UniformDistribution", {v1::DOUBLE}},
      {"LogUniformDistribution", {v1::DOUBLE, true}},
      {"DiscreteUniformDistribution", {v1::DOUBLE}},
      {"IntUniformDistribution", {v1::INT}},
      {"IntLogUniformDistribution", {v1::INT, true}}};
  return known;
}

void SetMarks(YamlNode& node, Mark mark) {
  node.mark = mark;
  for (YamlNode& key : node.keys) key.mark = mark;
  for (YamlNode& item : node.items) SetMarks(item, mark);
}

class StudyReader {
 public:
  explicit StudyReader(const Reading& reading)
      : spec_(*reading.experiment.mutable_spec()), reading_(reading), report_(reading.report) {}

  void Run() {
    Fields root(&reading_.root, {"", reading_.root.mark}, &report_);
    std::string wrapped;
    for (const char* key : {"distributions", "search_space"}) {
      if (root.Has(key)) wrapped = key;
    }
    if (wrapped.empty()) {
      ReadSpace(root);
    } else {
      TakeName(root, "study_name", reading_);
      Fields space = root.Child(wrapped);
      ReadSpace(space);
      ReadStudy(root);
      root.LeaveOut({"sampler", "pruner"}, "spec.algorithm and spec.earlyStopping name those here");
      root.Finish(kOptuna);
    }
    if (!spec_.has_objective()) AddObjective(root.place(), "value", "minimize");
    spec_.mutable_algorithm()->set_algorithm_name("auto");
    spec_.mutable_shirabe()->set_ask_and_tell(true);
    report_.Changed(root.place(), {"spec.shirabe.askAndTell", "true"},
                    "a study has no program: shirabe ask and tell run its trials, or give a "
                    "spec.trialTemplate");
  }

 private:
  void AddObjective(const Place& place, const std::string& metric, const std::string& direction) {
    const v1::ObjectiveType type = direction == "maximize" ? v1::MAXIMIZE : v1::MINIMIZE;
    if (!spec_.has_objective()) {
      spec_.mutable_objective()->set_objective_metric_name(metric);
      spec_.mutable_objective()->set_type(type);
      SetStrategy(v1::LATEST, *spec_.mutable_objective());
      return report_.Taken(place, {"spec.objective", absl::StrCat(direction, " ", metric)});
    }
    auto& further = *spec_.mutable_shirabe()->add_additional_objectives();
    further.set_metric_name(metric);
    further.set_type(type);
    report_.Taken(place,
                  {"spec.shirabe.additionalObjectives", absl::StrCat(direction, " ", metric)});
  }

  void ReadStudy(Fields& root) {
    std::vector<std::string> directions = root.Texts("directions");
    if (const auto one = root.Text("direction")) directions.insert(directions.begin(), *one);
    const std::vector<std::string> names = root.Texts("metric_names");
    if (!names.empty()) report_.Taken(root.At("metric_names"), {"spec.objective"});
    for (size_t i = 0; i < directions.size() && !report_.full(); ++i) {
      std::string word = directions[i];
      if (word == "MINIMIZE" || word == "1") word = "minimize";
      if (word == "MAXIMIZE" || word == "2") word = "maximize";
      const Place place = root.At(root.Has("directions") ? "directions" : "direction");
      if (word != "minimize" && word != "maximize") {
        report_.Error(place, absl::StrCat("\"", word, "\" is neither minimize nor maximize"));
      }
      const std::string value = directions.size() == 1 ? "value" : absl::StrCat("value_", i);
      AddObjective(place, i < names.size() ? names[i] : value, word);
    }
    if (const auto trials = root.Count("n_trials", 1)) {
      spec_.set_max_trial_count(*trials);
      report_.Taken(root.At("n_trials"), {"spec.maxTrialCount", absl::StrCat(*trials)});
    }
    if (const auto jobs = root.Count("n_jobs", 1)) {
      spec_.set_parallel_trial_count(*jobs);
      report_.Taken(root.At("n_jobs"), {"spec.parallelTrialCount", absl::StrCat(*jobs)});
    }
  }

  void ReadSpace(Fields& space) {
    for (const std::string& name : space.Keys()) {
      if (report_.full()) return;
      const YamlNode* value = space.Find(name);
      if (value != nullptr && value->kind == YamlNode::Kind::kString) value = Parsed(*value);
      Fields distribution(value, space.At(name), &report_);
      ReadDistribution(name, distribution);
    }
    if (spec_.parameters_size() == 0) report_.Error(space.place(), "has no distribution");
  }

  // The tree of a text that is JSON itself; the text, where it is none.
  const YamlNode* Parsed(const YamlNode& text) {
    auto documents = ParseYaml(text.text);
    if (documents.size() != 1 || !documents[0].problems.empty()) return &text;
    texts_.push_back(std::move(documents[0].root));
    SetMarks(texts_.back(), text.mark);
    return &texts_.back();
  }

  void ReadDistribution(const std::string& name, Fields& distribution) {
    std::vector<std::string> words;
    for (const auto& [word, known] : Distributions()) words.push_back(word);
    const auto word = distribution.Word("name", words);
    if (!word && !distribution.Has("name")) {
      report_.Error(distribution.At("name"), "is required: the name of the distribution");
    }
    const KnownDistribution known = Distributions().at(word.value_or("FloatDistribution"));
    v1::ParameterSpec& made = AddParameter(name, spec_);
    made.set_parameter_type(known.type);
    const std::string path = LastParameterPath(spec_);
    report_.Taken(distribution.place(), {path + ".name", name});
    report_.Taken(distribution.At("name"), {path + ".parameterType"});
    Fields attributes = distribution.Child("attributes");
    v1::FeasibleSpace& values = *made.mutable_feasible_space();
    if (known.type == v1::CATEGORICAL) {
      for (std::string& text : attributes.Texts("choices")) values.add_list(std::move(text));
      report_.Taken(attributes.At("choices"),
                    {path + ".feasibleSpace.list", absl::StrJoin(values.list(), ", ")});
    } else {
      ReadBounds(attributes, known, made);
    }
    attributes.Finish(kOptuna);
    distribution.Finish(kOptuna);
  }

  void ReadBounds(Fields& attributes, const KnownDistribution& known, v1::ParameterSpec& made) {
    v1::FeasibleSpace& values = *made.mutable_feasible_space();
    const std::string path = LastParameterPath(spec_) + ".feasibleSpace";
    if (const auto low = attributes.Number("low")) {
      values.set_min(*low);
      report_.Taken(attributes.At("low"), {path + ".min", FormatNumber(*low)});
    }
    if (const auto high = attributes.Number("high")) {
      values.set_max(*high);
      report_.Taken(attributes.At("high"), {path + ".max", FormatNumber(*high)});
    }
    const bool log = attributes.Flag("log").value_or(false) || known.log;
    if (log) values.set_distribution(v1::LOG_UNIFORM);
    if (attributes.Has("log")) {
      report_.Taken(attributes.At("log"), {path + ".distribution", log ? "logUniform" : "uniform"});
    }
    for (const char* key : {"step", "q"}) {
      const auto step = attributes.Number(key);
      if (!step) continue;
      const bool counts = made.parameter_type() == v1::DOUBLE || *step != 1;
      if (counts) values.set_step(*step);
      report_.Taken(attributes.At(key), {path + ".step", FormatNumber(*step)});
    }
  }

  v1::ExperimentSpec& spec_;
  const Reading& reading_;
  Report& report_;
  std::list<YamlNode> texts_;
};

}  // namespace

void ReadOptunaSpace(const Reading& reading) { StudyReader(reading).Run(); }

}  // namespace shirabe::convert
