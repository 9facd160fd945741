#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "base/text/number.h"
#include "base/text/yaml_tree.h"
#include "import/import_readers.h"

namespace shirabe::import {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kExperimentLabel[] = "katib.kubeflow.org/experiment";

const YamlNode* At(const YamlNode* node, std::initializer_list<const char*> path) {
  for (const char* key : path) node = node == nullptr ? nullptr : node->Find(key);
  return node;
}

std::string Text(const YamlNode& node, std::initializer_list<const char*> path) {
  const YamlNode* found = At(&node, path);
  return found == nullptr || !found->IsScalar() ? "" : found->text;
}

// As JSON, numbers as they are written.
Json Tree(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kMapping: {
      Json object = Json::object();
      auto value = node.items.begin();
      for (const YamlNode& key : node.keys) object[key.text] = Tree(*value++);
      return object;
    }
    case YamlNode::Kind::kSequence: {
      Json list = Json::array();
      for (const YamlNode& item : node.items) list.push_back(Tree(item));
      return list;
    }
    case YamlNode::Kind::kNull: return nullptr;
    case YamlNode::Kind::kBoolean: return node.boolean;
    case YamlNode::Kind::kNumber:
      if (node.integer) return *node.integer;
      return node.number;
    default: return node.text;
  }
}

// The objects of all documents, those of a List one by one.
void Collect(const YamlNode& node, std::vector<const YamlNode*>& objects) {
  const YamlNode* items = node.Find("items");
  if (items == nullptr) return objects.push_back(&node);
  for (const YamlNode& item : items->items) Collect(item, objects);
}

v1::TrialPhase PhaseOf(const YamlNode& trial) {
  const YamlNode* conditions = At(&trial, {"status", "conditions"});
  if (conditions == nullptr) return v1::TRIAL_PENDING;
  constexpr std::pair<const char*, v1::TrialPhase> kEnds[] = {
      {"Succeeded", v1::TRIAL_SUCCEEDED},
      {"EarlyStopped", v1::TRIAL_EARLY_STOPPED},
      {"Failed", v1::TRIAL_FAILED},
      {"Killed", v1::TRIAL_KILLED},
      {"MetricsUnavailable", v1::TRIAL_FAILED},
  };
  for (const YamlNode& condition : conditions->items) {
    if (Text(condition, {"status"}) != "True") continue;
    for (const auto& [type, phase] : kEnds) {
      if (Text(condition, {"type"}) == type) return phase;
    }
  }
  return v1::TRIAL_PENDING;
}

absl::Time TimeAt(const YamlNode& node, std::initializer_list<const char*> path) {
  absl::Time time = absl::InfinitePast();
  absl::ParseTime(absl::RFC3339_full, Text(node, path), &time, nullptr);
  return time;
}

// Which of a metric's three values counts.
std::string StrategyFor(const Json& objective, const std::string& metric) {
  const Json strategies = objective.value("metricStrategies", Json::array());
  for (const Json& strategy : strategies) {
    if (strategy.value("name", "") == metric) return strategy.value("value", "latest");
  }
  return objective.value("type", "") == "maximize" ? "max" : "min";
}

client::ImportedTrial ReadTrial(const YamlNode& node, const Json& objective) {
  client::ImportedTrial trial{.name = "trial " + Text(node, {"metadata", "name"})};
  trial.phase = PhaseOf(node);
  trial.start = TimeAt(node, {"status", "startTime"});
  trial.end = TimeAt(node, {"status", "completionTime"});
  if (const YamlNode* values = At(&node, {"spec", "parameterAssignments"})) {
    for (const YamlNode& value : values->items) {
      trial.values.emplace_back(Text(value, {"name"}), Text(value, {"value"}));
    }
  }
  const YamlNode* metrics = At(&node, {"status", "observation", "metrics"});
  if (metrics == nullptr) return trial;
  for (const YamlNode& metric : metrics->items) {
    const std::string name = Text(metric, {"name"});
    const std::string text = Text(metric, {StrategyFor(objective, name).c_str()});
    if (const auto value = ParseNumber(text)) trial.points.push_back({name, 1, *value});
  }
  return trial;
}

// What Katib lets stand in a specification, and ours need not have.
Json Only(const Json& tree, std::initializer_list<const char*> keys) {
  Json kept = Json::object();
  for (const char* key : keys) {
    if (tree.contains(key)) kept[key] = tree[key];
  }
  return kept;
}

StatusOr<client::Imported> ReadExperiment(const std::string& path, const YamlNode& node) {
  const std::string name = Text(node, {"metadata", "name"});
  const YamlNode* spec = node.Find("spec");
  const Json tree = spec == nullptr ? Json::object() : Tree(*spec);
  if (name.empty() || !tree.contains("objective") || !tree.contains("parameters")) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", node.mark.line,
                                                   ": an Experiment without metadata.name, ",
                                                   "spec.objective or spec.parameters"));
  }
  client::Imported imported{.name = client::ExperimentNameFrom(name),
                            .source = "Katib experiment " + name,
                            .ns = Text(node, {"metadata", "namespace"})};
  imported.objective = Only(tree["objective"], {"type", "goal", "objectiveMetricName",
                                                "additionalMetricNames", "metricStrategies"});
  imported.parameters = tree["parameters"];
  return imported;
}

}  // namespace

StatusOr<std::vector<client::Imported>> ReadKatib(const std::string& path,
                                                  const std::string& text) {
  const auto documents = ParseYaml(text);
  std::vector<const YamlNode*> objects;
  for (const YamlDocument& document : documents) {
    if (!document.problems.empty()) {
      const auto& problem = document.problems[0];
      return absl::InvalidArgumentError(absl::StrCat(path, ":", problem.mark.line, ":",
                                                     problem.mark.column, ": ", problem.message));
    }
    Collect(document.root, objects);
  }
  std::vector<client::Imported> all;
  std::map<std::pair<std::string, std::string>, size_t> by_name;  // name, namespace
  for (const YamlNode* object : objects) {
    if (Text(*object, {"kind"}) != "Experiment") continue;
    ASSIGN_OR_RETURN(client::Imported imported, ReadExperiment(path, *object));
    by_name[{Text(*object, {"metadata", "name"}), imported.ns}] = all.size();
    all.push_back(std::move(imported));
  }
  if (all.empty()) {
    return absl::InvalidArgumentError(
        path + " has no Experiment: write it with kubectl get experiments,trials -o yaml");
  }
  std::map<size_t, int64_t> open;  // trials that had not ended, by experiment
  for (const YamlNode* object : objects) {
    if (Text(*object, {"kind"}) != "Trial") continue;
    const std::string name = Text(*object, {"metadata", "labels", kExperimentLabel});
    const std::string ns = Text(*object, {"metadata", "namespace"});
    // Where one of the two does not say its namespace, the name has to do.
    auto owner = by_name.find({name, ns});
    if (owner == by_name.end()) owner = by_name.lower_bound({name, ""});
    if (owner == by_name.end() || owner->first.first != name) continue;
    if (!ns.empty() && owner->first.second != ns && !owner->first.second.empty()) continue;
    client::Imported& imported = all[owner->second];
    client::ImportedTrial trial = ReadTrial(*object, imported.objective);
    if (trial.phase == v1::TRIAL_PENDING) {
      ++open[owner->second];
    } else {
      imported.trials.push_back(std::move(trial));
    }
  }
  for (const auto& [index, count] : open) {
    all[index].notes.push_back(absl::StrCat(count, " trials had not ended"));
  }
  return all;
}

}  // namespace shirabe::import
