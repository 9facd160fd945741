#include "trial/pod/pod_names.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_cat.h"
#include "artifacts/package/code_package.h"
#include "base/text/json_text.h"
#include "trial/file_layout.h"
#include "trial/local/supervisor_records.h"

namespace shirabe::trial {

AttemptPaths PodPaths(const AttemptKey& key) { return PodPaths(key, kPodRoot); }

AttemptPaths PodPaths(const AttemptKey& key, const std::string& pod_root) {
  AttemptPaths paths = FileLayout(pod_root + "/home").Paths(key);
  paths.dir = pod_root + "/run";
  paths.log = paths.dir + "/log";
  paths.metrics_file = paths.dir + "/metrics.jsonl";
  paths.hypertune_file = paths.dir + "/hypertune.jsonl";
  paths.scrapes_file = paths.dir + "/scrapes.jsonl";
  paths.params_file = paths.dir + "/params.json";
  paths.control_file = paths.dir + "/control.json";
  return paths;
}

std::string PodCodeDir(const std::string& package) {
  const auto digest = artifacts::DigestOfPackage(package);
  return digest.ok() ? absl::StrCat(kPodCode, "/", *digest) : "";
}

std::vector<std::string> PodCommand(const std::string& id, absl::Duration grace) {
  const std::string run = kPodRun;
  return {kPodSupervisor,
          "--dir",
          run,
          "--id",
          id,
          "--log",
          run + "/log",
          "--env-file",
          run + "/env",
          "--control",
          run + "/control.json",
          "--grace-ms",
          absl::StrCat(absl::ToInt64Milliseconds(ProgramGrace(grace))),
          "--"};
}

absl::Duration ProgramGrace(absl::Duration grace) {
  return std::max(grace * 2 / 3, grace - absl::Seconds(5));
}

absl::Duration FlushGrace(absl::Duration grace) {
  return std::max(grace * 13 / 15, grace - absl::Seconds(2));
}

namespace {

std::map<std::string, std::string> TextMap(const Json& object) {
  std::map<std::string, std::string> map;
  if (!object.is_object()) return map;
  for (const auto& [key, value] : object.items()) map[key] = Text(value);
  return map;
}

}  // namespace

void Label(const AttemptKey& key, Json& metadata) {
  Json& labels = ObjectIn(metadata, "labels");
  labels[kExperimentLabel] = key.trial.experiment.name;
  labels[kTrialLabel] = TrialName(key.trial);
  labels[kAttemptLabel] = std::to_string(key.number);
  labels[kManagedByLabel] = kManager;
}

void Annotate(const AttemptRequest& request, const AttemptRecipe& recipe, Json& metadata) {
  Json text = {{"primaryContainer", recipe.primary_container}};
  if (!recipe.primary_labels.empty()) text["primaryLabels"] = recipe.primary_labels;
  if (!recipe.success_condition.empty()) text["success"] = recipe.success_condition;
  if (!recipe.failure_condition.empty()) text["failure"] = recipe.failure_condition;
  if (recipe.retain) text["retain"] = true;
  if (recipe.instrumented) text["instrumented"] = true;
  if (!recipe.collector.empty()) text["collector"] = recipe.collector;
  Json& annotations = ObjectIn(metadata, "annotations");
  const std::string id = AttemptId(request.key, request.token);
  annotations[kAttemptIdAnnotation] = id;
  ObjectIn(metadata, "labels")[kAttemptIdLabel] = id;
  annotations[kRecipeAnnotation] = JsonText(text);
}

std::optional<AttemptKey> KeyOf(const Json& object) {
  const Json& metadata = At(object, "metadata");
  const std::string ns = Text(metadata, {"namespace"});
  const std::string number = Text(metadata, {"labels", kAttemptLabel});
  const auto trial = ParseTrialName(Text(metadata, {"labels", kTrialLabel}), ns);
  if (!trial || trial->experiment.name != Text(metadata, {"labels", kExperimentLabel})) {
    return std::nullopt;
  }
  AttemptKey key{*trial, 0};
  const char* end = number.data() + number.size();
  const auto read = std::from_chars(number.data(), end, key.number);
  if (read.ec != std::errc() || read.ptr != end || key.number < 1) return std::nullopt;
  return key;
}

std::string AttemptIdOf(const Json& object) {
  return Text(object, {"metadata", "annotations", kAttemptIdAnnotation});
}

AttemptRecipe RecipeOf(const Json& object) {
  const std::string text = Text(object, {"metadata", "annotations", kRecipeAnnotation});
  const Json json = ReadJsonOrDiscarded(text);
  return {.primary_container = Text(json, {"primaryContainer"}),
          .primary_labels = TextMap(At(json, "primaryLabels")),
          .success_condition = Text(json, {"success"}),
          .failure_condition = Text(json, {"failure"}),
          .retain = IsTrue(At(json, "retain")),
          .instrumented = IsTrue(At(json, "instrumented")),
          .collector = Text(json, {"collector"})};
}

bool IsPrimary(const Json& pod, const AttemptRecipe& recipe) {
  const Json& labels = At(pod, {"metadata", "labels"});
  for (const auto& [key, value] : recipe.primary_labels) {
    if (Text(labels, {key.c_str()}) != value) return false;
  }
  return !Named(At(pod, {"spec", "containers"}), recipe.primary_container).is_null();
}

}  // namespace shirabe::trial
