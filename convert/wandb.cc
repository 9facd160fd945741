// A sweep of Weights & Biases:
//   {program, method: grid | random | bayes, metric: {name, goal, target}, run_cap, command: […],
//    early_terminate: {type: hyperband, min_iter, max_iter, s, eta, strict},
//    parameters: {NAME: {value} | {values} | {min, max} | {distribution, …}}}
// log_uniform and its kin have exponents of e for bounds, log_uniform_values has the bounds.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "convert/readers.h"
#include "convert/wandb_command.h"

namespace shirabe::convert {
namespace {

constexpr char kSweep[] = "a sweep of Weights & Biases";
// What is beyond so many standard deviations is not tried.
constexpr double kDeviations = 3;

// How a parameter's values are spread; `exponents`: its bounds are those of e.
struct Spread {
  v1::Distribution distribution = v1::UNIFORM;
  bool exponents = false;
  bool integer = false;
  bool centred = false;  // by mu and sigma
};

const std::map<std::string, Spread>& Spreads() {
  static const std::map<std::string, Spread> spreads = {
      {"uniform", {}},
      {"q_uniform", {}},
      {"int_uniform", {.integer = true}},
      {"log_uniform", {.distribution = v1::LOG_UNIFORM, .exponents = true}},
      {"q_log_uniform", {.distribution = v1::LOG_UNIFORM, .exponents = true}},
      {"log_uniform_values", {.distribution = v1::LOG_UNIFORM}},
      {"q_log_uniform_values", {.distribution = v1::LOG_UNIFORM}},
      {"inv_log_uniform_values", {.distribution = v1::LOG_UNIFORM}},
      {"normal", {.distribution = v1::NORMAL, .centred = true}},
      {"q_normal", {.distribution = v1::NORMAL, .centred = true}},
      {"log_normal", {.distribution = v1::LOG_NORMAL, .centred = true}},
      {"q_log_normal", {.distribution = v1::LOG_NORMAL, .centred = true}}};
  return spreads;
}

bool IsText(const YamlNode& node) {
  return !IsSweepBoolean(node) && node.kind != YamlNode::Kind::kNumber &&
         node.kind != YamlNode::Kind::kNull;
}
bool IsNumber(const YamlNode& node) { return node.kind == YamlNode::Kind::kNumber; }

class SweepReader {
 public:
  explicit SweepReader(const Reading& reading)
      : spec_(*reading.experiment.mutable_spec()), reading_(reading), report_(reading.report) {}

  void Run() {
    Fields root(&reading_.root, {"", reading_.root.mark}, &report_);
    TakeName(root, "name", reading_);
    ReadMethod(root);
    ReadMetric(root);
    ReadParameters(root);
    ReadStop(root);
    if (const auto cap = root.Count("run_cap", 1)) {
      spec_.set_max_trial_count(*cap);
      report_.Taken(root.At("run_cap"), {"spec.maxTrialCount", absl::StrCat(*cap)});
    }
    spec_.set_parallel_trial_count(1);
    report_.Changed(root.place(), {"spec.parallelTrialCount", "1"},
                    "a sweep does not say how many agents run it");
    root.LeaveOut({"description"}, "write it as a note of the experiment (shirabe note)");
    root.LeaveOut({"controller", "settings", "imageuri", "job", "prior_runs"},
                  "belongs to the service of Weights & Biases");
    ReadSweepCommand(reading_, root, values_);
    root.Finish(kSweep);
  }

 private:
  void ReadMethod(Fields& root) {
    const auto method = root.Word("method", {"grid", "random", "bayes"});
    if (!method && !root.Has("method")) {
      report_.Error(root.At("method"), "is required: grid, random or bayes");
    }
    const std::string name = method == "bayes" ? "bayesianoptimization" : method.value_or("auto");
    spec_.mutable_algorithm()->set_algorithm_name(name);
    if (method) report_.Taken(root.At("method"), {"spec.algorithm.algorithmName", name});
  }

  void ReadMetric(Fields& root) {
    v1::ObjectiveSpec& objective = *spec_.mutable_objective();
    Fields metric = root.Child("metric");
    const auto name = metric.Text("name");
    if (!name) {
      report_.Error(root.Has("metric") ? metric.At("name") : root.At("metric"),
                    "is required: {name: METRIC, goal: minimize or maximize}");
    }
    objective.set_objective_metric_name(name.value_or(""));
    report_.Changed(metric.At("name"), {"spec.objective.objectiveMetricName", name.value_or("")},
                    "wandb.log is not read: print NAME=VALUE, or write to $SHIRABE_METRICS_FILE; "
                    "the last value counts");
    const auto goal = metric.Word("goal", {"minimize", "maximize"});
    objective.set_type(goal == "maximize" ? v1::MAXIMIZE : v1::MINIMIZE);
    if (goal) report_.Taken(metric.At("goal"), {"spec.objective.type", *goal});
    SetStrategy(v1::LATEST, objective);
    if (const auto target = metric.Number("target")) {
      objective.set_goal(*target);
      report_.Taken(metric.At("target"), {"spec.objective.goal", FormatNumber(*target)});
    }
    metric.LeaveOut({"impute", "impute_while_running"}, "a trial without a result has none");
    metric.Finish(kSweep);
  }

  void ReadStop(Fields& root) {
    if (root.Find("early_terminate") == nullptr) return;
    Fields rule = root.Child("early_terminate");
    rule.Word("type", {"hyperband"});
    v1::EarlyStoppingSpec& stop = *spec_.mutable_early_stopping();
    stop.set_algorithm_name("asha-stop");
    const auto set = [&stop](const char* name, const std::string& value) {
      v1::Setting& setting = *stop.add_algorithm_settings();
      setting.set_name(name);
      setting.set_value(value);
    };
    report_.Changed(rule.At("type"), {"spec.earlyStopping.algorithmName", "asha-stop"},
                    "the best 1/eta go on at each rung, by their best value so far; steps are "
                    "those that the program reports");
    const int32_t eta = rule.Count("eta", 2).value_or(3);
    set("eta", absl::StrCat(eta));
    if (rule.Has("eta")) report_.Taken(rule.At("eta"), {"spec.earlyStopping.algorithmSettings"});
    auto first = rule.Count("min_iter", 1);
    if (first) report_.Taken(rule.At("min_iter"), {"spec.earlyStopping.algorithmSettings"});
    const auto last = rule.Count("max_iter", 1), brackets = rule.Count("s", 1);
    if (!first && last && brackets) {
      double rung = *last;
      for (int i = 0; i < *brackets && rung > 1; ++i) rung = std::floor(rung / eta);
      first = std::max(1, static_cast<int32_t>(rung));
      report_.Changed(rule.At("max_iter"), {"spec.earlyStopping.algorithmSettings"},
                      absl::StrCat("the first rung: max_iter / eta^s = ", *first));
      report_.Changed(rule.At("s"), {"spec.earlyStopping.algorithmSettings"}, "as for max_iter");
    } else {
      rule.LeaveOut({"max_iter", "s"}, "rungs go on from min_iter by eta");
    }
    set("min_resource", absl::StrCat(first.value_or(1)));
    rule.LeaveOut({"strict"}, "a rung keeps the best 1/eta always");
    rule.Finish(kSweep);
  }

  void ReadParameters(Fields& root) {
    Fields all = root.Child("parameters");
    for (const std::string& name : all.Keys()) {
      if (report_.full()) return;
      Fields parameter = all.Child(name);
      ReadParameter(name, parameter);
      parameter.Finish(kSweep);
    }
    if (spec_.parameters_size() == 0) {
      report_.Error(root.At("parameters"), "needs at least one parameter that varies");
    }
  }

  void ReadParameter(const std::string& name, Fields& parameter) {
    if (parameter.Find("parameters") != nullptr) {
      return report_.Error(parameter.At("parameters"),
                           "nested parameters cannot be taken over: write them flat, with names "
                           "such as " +
                               Quoted(name + ".lr"));
    }
    const YamlNode* value = parameter.Find("value");
    const auto distribution = parameter.Text("distribution");
    if (value != nullptr || distribution == "constant") {
      const bool scalar = value != nullptr && value->IsScalar();
      if (!scalar) report_.Error(parameter.At("value"), "must be a text or a number");
      const std::string text = scalar ? SweepText(*value) : "";
      values_.constants.push_back({name, text, scalar ? SweepJson(*value) : "null"});
      return report_.Taken(parameter.At("value"), {"spec.trialTemplate", name + "=" + text});
    }
    v1::ParameterSpec& made = AddParameter(name, spec_);
    report_.Taken(parameter.place(), {LastParameterPath(spec_) + ".name", name});
    if (parameter.Find("values") != nullptr) return ReadList(parameter, made);
    ReadSpread(parameter, distribution.value_or(""), made);
  }

  void ReadList(Fields& parameter, v1::ParameterSpec& made) {
    const YamlNode* values = parameter.Find("values");
    const bool numbers = std::all_of(values->items.begin(), values->items.end(), IsNumber);
    made.set_parameter_type(numbers ? v1::DISCRETE : v1::CATEGORICAL);
    parameter.Texts("values");  // says what is no scalar
    for (const YamlNode& item : values->items) {
      made.mutable_feasible_space()->add_list(SweepText(item));
    }
    const auto& items = values->items;
    if (!numbers && !std::all_of(items.begin(), items.end(), IsText)) {
      values_.untexts.push_back(made.name());
      if (std::all_of(items.begin(), items.end(), IsSweepBoolean)) {
        values_.booleans.push_back(made.name());
      }
    }
    report_.Taken(parameter.At("values"), {LastParameterPath(spec_) + ".feasibleSpace.list",
                                           absl::StrJoin(made.feasible_space().list(), ", ")});
    parameter.Find("distribution");
    parameter.LeaveOut({"probabilities"}, "all values of a list are equally likely here");
  }

  void ReadSpread(Fields& parameter, const std::string& word, v1::ParameterSpec& made) {
    const YamlNode* low = parameter.Find("min");
    const YamlNode* high = parameter.Find("max");
    Spread spread;
    if (word.empty()) {
      spread.integer = low != nullptr && high != nullptr && low->integer && high->integer;
    } else if (Spreads().contains(word)) {
      spread = Spreads().at(word);
      report_.Taken(parameter.At("distribution"),
                    {LastParameterPath(spec_) + ".feasibleSpace.distribution", word});
    } else {
      return report_.Error(parameter.At("distribution"),
                           Quoted(word) +
                               " has no counterpart here: give min and max, with "
                               "uniform or log_uniform_values");
    }
    made.set_parameter_type(spread.integer ? v1::INT : v1::DOUBLE);
    if (spread.distribution != v1::UNIFORM) {
      made.mutable_feasible_space()->set_distribution(spread.distribution);
    }
    if (spread.centred) {
      SetCentre(parameter, spread, made);
    } else {
      SetBounds(parameter, spread, made);
    }
    if (absl::StartsWith(word, "q_") || parameter.Has("q")) {
      const double step = parameter.Number("q").value_or(1);
      made.mutable_feasible_space()->set_step(step);
      report_.Changed(parameter.At("q"),
                      {LastParameterPath(spec_) + ".feasibleSpace.step", FormatNumber(step)},
                      "counted from min, where a sweep rounds to multiples of q");
    }
  }

  void SetBounds(Fields& parameter, const Spread& spread, v1::ParameterSpec& made) {
    v1::FeasibleSpace& space = *made.mutable_feasible_space();
    const std::string path = LastParameterPath(spec_) + ".feasibleSpace";
    for (const char* key : {"min", "max"}) {
      const auto given = parameter.Number(key);
      if (!given) {
        if (!parameter.Has(key)) report_.Error(parameter.At(key), "is required, or give values");
        continue;
      }
      const double bound = spread.exponents ? std::exp(*given) : *given;
      const bool least = std::string(key) == "min";
      if (least) space.set_min(bound);
      if (!least) space.set_max(bound);
      const Target target{absl::StrCat(path, ".", key), FormatNumber(bound)};
      if (!spread.exponents) report_.Taken(parameter.At(key), target);
      if (spread.exponents) report_.Changed(parameter.At(key), target, "e to the power of it");
    }
  }

  void SetCentre(Fields& parameter, const Spread& spread, v1::ParameterSpec& made) {
    const double mu = parameter.Number("mu").value_or(0);
    const double sigma = parameter.Number("sigma").value_or(1);
    const bool log = spread.distribution == v1::LOG_NORMAL;
    const auto bound = [log](double at) { return log ? std::exp(at) : at; };
    v1::FeasibleSpace& space = *made.mutable_feasible_space();
    space.set_min(bound(mu - kDeviations * sigma));
    space.set_max(bound(mu + kDeviations * sigma));
    const std::string path = LastParameterPath(spec_) + ".feasibleSpace";
    const std::string why = "nothing beyond three standard deviations is tried";
    report_.Changed(parameter.At("mu"), {path + ".min", FormatNumber(space.min())}, why);
    report_.Changed(parameter.At("sigma"), {path + ".max", FormatNumber(space.max())}, why);
    parameter.LeaveOut({"min", "max"}, "does not go with mu and sigma");
  }

  v1::ExperimentSpec& spec_;
  const Reading& reading_;
  Report& report_;
  SweepValues values_;
};

}  // namespace

void ReadSweep(const Reading& reading) { SweepReader(reading).Run(); }

}  // namespace shirabe::convert
