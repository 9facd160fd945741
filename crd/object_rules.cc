#include "crd/object_rules.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "experiment/spec/spec_limits.h"
#include "schedule/start_decision.h"

namespace shirabe::crd {
namespace {

using OrderedJson = nlohmann::ordered_json;

using experiment::kMaxNameBytes;

// Of a list that has no limit of its own below.
constexpr int kMaxItems = 1'000;
// Of a schedule; what else is wrong with it the controller says.
constexpr int kMaxCronBytes = 200;
constexpr int kMaxZoneBytes = 100;
constexpr int kMaxKept = 100;

// Lists by their paths, `[]` for an item.
const std::map<std::string, int>& MostItems() {
  static const std::map<std::string, int> kMost = {
      {".parameters", experiment::kMaxParameters},
      {".parameters[].feasibleSpace.list", experiment::kMaxListValues},
      {".nasConfig.operations", experiment::kMaxOperations},
      {".nasConfig.operations[].parameters", experiment::kMaxParameters},
      {".nasConfig.operations[].parameters[].feasibleSpace.list", experiment::kMaxListValues},
      {".objective.additionalMetricNames", experiment::kMaxMetrics},
      {".objective.metricStrategies", 2 * experiment::kMaxMetrics + 1},
      {".algorithm.algorithmSettings", experiment::kMaxSettings},
      {".earlyStopping.algorithmSettings", experiment::kMaxSettings},
      {".trialTemplate.trialParameters", experiment::kMaxTrialParameters},
      {".metricsCollectorSpec.source.filter.metricsFormat", experiment::kMaxPatterns},
      {".shirabe.start", experiment::kMaxStartPoints},
      {".shirabe.warmStart.experiments", experiment::kMaxNames},
      {".shirabe.capacity.pools", experiment::kMaxNames},
      {".shirabe.additionalObjectives", experiment::kMaxAdditionalObjectives},
      {".shirabe.constraints", experiment::kMaxConstraints},
      {".shirabe.space.conditions", experiment::kMaxParameters},
      {".shirabe.space.forbidden", experiment::kMaxForbidden},
      {".shirabe.space.linear", experiment::kMaxForbidden},
      {".shirabe.notifications", experiment::kMaxNotifications},
      {".shirabe.notifications[].events", experiment::kMaxCauses}};
  return kMost;
}

struct Rule {
  const char* path;  // of the value that `self` is; "" = the spec
  std::string rule;
  std::string message;
  const char* field = "";  // below the path: which one is to blame
};

// Unset, or null, as a field of these may be written, is the same.
const std::vector<Rule>& Rules() {
  static const std::vector<Rule> kRules = {
      {"", "has(self.parameters) && size(self.parameters) > 0 || has(self.nasConfig)",
       "parameters is required: give at least one parameter to tune"},
      {"", "!(has(self.parameters) && size(self.parameters) > 0 && has(self.nasConfig))",
       "nasConfig does not go with parameters: give one of the two", ".nasConfig"},
      {"",
       "has(self.trialTemplate) != (has(self.shirabe) && has(self.shirabe.askAndTell) && "
       "self.shirabe.askAndTell)",
       "trialTemplate is required, what one trial runs, or shirabe.askAndTell: true, where the "
       "callers run the trials; not both"},
      {".trialTemplate", "has(self.trialSpec) != has(self.configMap)",
       "give one of trialSpec, the object that runs a trial, and configMap, which has it"},
      {".metricsCollectorSpec.collector",
       "!has(self.kind) || self.kind != 'Custom' || has(self.customCollector)",
       "customCollector is required for kind Custom: the container that collects",
       ".customCollector"},
      {".shirabe.checkpoint.volume",
       "[has(self.claim), has(self.hostPath), has(self.size)].filter(one, one).size() == 1",
       "give one of claim (all trials share it), size (a claim for each trial) and hostPath"},
      {".shirabe.constraints[]", "self.metricName.size() > 0", "metricName is empty: name a metric",
       ".metricName"},
  };
  return kRules;
}

// What makes another search of one that has records: Submit refuses it, and so does the API server
// where it can see it. A field that is left out may be the same by its default.
constexpr const char* kFixed[] = {"algorithm.algorithmName",
                                  "algorithm.algorithmSettings",
                                  "earlyStopping.algorithmName",
                                  "earlyStopping.algorithmSettings",
                                  "objective.type",
                                  "objective.objectiveMetricName",
                                  "resumePolicy",
                                  "trialTemplate.primaryContainerName",
                                  "trialTemplate.trialParameters",
                                  "trialTemplate.successCondition",
                                  "trialTemplate.failureCondition",
                                  "metricsCollectorSpec.collector.kind",
                                  "shirabe"};

// Names that are nothing without a letter; and how long each may be.
constexpr const char* kNames[] = {
    ".parameters[].name", ".objective.objectiveMetricName", ".trialTemplate.trialParameters[].name",
    ".trialTemplate.trialParameters[].reference", ".shirabe.additionalObjectives[].metricName"};

// Whole numbers that may be written as text: "3".
constexpr const char* kCounts[] = {".parallelTrialCount", ".maxTrialCount", ".maxFailedTrialCount"};

// The schema at that path of the spec; null where the spec has none.
OrderedJson* Find(OrderedJson& spec, const std::string& path) {
  OrderedJson* schema = &spec;
  for (size_t at = 0; at < path.size();) {
    if (path.compare(at, 2, "[]") == 0) {
      schema = &(*schema)["items"];
      at += 2;
      continue;
    }
    const size_t end = std::min(path.find_first_of(".[", at + 1), path.size());
    const std::string name = path.substr(at + 1, end - at - 1);
    if (!schema->contains("properties") || !(*schema)["properties"].contains(name)) return nullptr;
    schema = &(*schema)["properties"][name];
    at = end;
  }
  return schema;
}

void Bound(OrderedJson& schema, const std::string& path) {
  if (schema.value("type", "") == "array") {
    const auto known = MostItems().find(path);
    const int most = known == MostItems().end() ? kMaxItems : known->second;
    schema["maxItems"] = most;
    if (schema.contains("description")) {
      schema["description"] =
          absl::StrCat(schema["description"].get<std::string>(), "; at most ", most);
    }
    Bound(schema["items"], path + "[]");
  }
  if (!schema.contains("properties")) return;
  for (auto& [name, child] : schema["properties"].items()) Bound(child, path + "." + name);
}

void Require(OrderedJson& schema, const Rule& rule) {
  OrderedJson written = {{"rule", rule.rule}, {"message", rule.message}};
  if (*rule.field != 0) written["fieldPath"] = rule.field;
  schema["x-kubernetes-validations"].push_back(std::move(written));
}

// has() of each step from `root` to the field, as CEL wants it of what may be absent.
std::string Has(const std::string& root, const std::string& path) {
  std::string all, at = root;
  for (const absl::string_view step : absl::StrSplit(path, '.')) {
    absl::StrAppend(&at, ".", step);
    absl::StrAppend(&all, all.empty() ? "" : " && ", "has(", at, ")");
  }
  return all;
}

void ForbidChange(OrderedJson& schema, const std::string& field) {
  const std::string rule = absl::StrCat("!(", Has("oldSelf", "status.shirabe.uid"), " && ",
                                        Has("self.spec", field), " && ", Has("oldSelf.spec", field),
                                        ") || self.spec.", field, " == oldSelf.spec.", field);
  Require(schema, {"", rule,
                   absl::StrCat("spec.", field, " of an experiment that has begun stays as it is: ",
                                "its counts, its goal and its ranges may change; to search ",
                                "otherwise, give a new one another metadata.name")});
}

}  // namespace

void AddExperimentRules(nlohmann::ordered_json& schema) {
  OrderedJson& spec = schema["properties"]["spec"];
  Bound(spec, "");
  for (const char* path : kNames) {
    if (OrderedJson* name = Find(spec, path)) {
      (*name)["minLength"] = 1;
      (*name)["maxLength"] = kMaxNameBytes;
    }
  }
  for (const char* path : kCounts) {
    OrderedJson* count = Find(spec, path);
    if (count == nullptr) continue;
    Require(*count, {"", "type(self) != string || self.matches('^ *[+-]?[0-9]')",
                     "is not a number: write one, as 3"});
  }
  if (OrderedJson* parallel = Find(spec, kCounts[0])) {
    (*parallel)["maximum"] = experiment::kMaxParallelTrials;
  }
  for (const Rule& rule : Rules()) {
    if (OrderedJson* found = Find(spec, rule.path)) Require(*found, rule);
  }
  for (const char* field : kFixed) ForbidChange(schema, field);
}

void AddScheduleRules(nlohmann::ordered_json& schema) {
  OrderedJson& spec = schema["properties"]["spec"];
  OrderedJson& inner = spec["properties"]["experimentTemplate"]["properties"]["spec"];
  OrderedJson experiment = {{"properties", {{"spec", inner}}}};
  AddExperimentRules(experiment);
  inner = experiment["properties"]["spec"];
  const auto bound = [&](const char* path, const char* limit, int value) {
    if (OrderedJson* found = Find(spec, path)) (*found)[limit] = value;
  };
  bound(".schedule", "minLength", 1);
  bound(".schedule", "maxLength", kMaxCronBytes);
  bound(".timeZone", "maxLength", kMaxZoneBytes);
  for (const char* path :
       {".successfulExperimentsHistoryLimit", ".failedExperimentsHistoryLimit"}) {
    bound(path, "maximum", kMaxKept);
  }
  Require(schema, {"", absl::StrCat("size(self.metadata.name) <= ", schedule::kMaxScheduleName),
                   absl::StrCat("metadata.name has more than ", schedule::kMaxScheduleName,
                                " characters: experiments are named after it and their time")});
}

}  // namespace shirabe::crd
