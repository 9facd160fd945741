#include "crd/optimization_object.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "client/import_batch.h"
#include "convert/optimization_job.h"
#include "crd/resource_kinds.h"
#include "experiment/spec/local_support.h"
#include "experiment/spec/message_tree.h"

namespace shirabe::crd {
namespace {

using kube::Json;

constexpr char kAnnotations[] = "metadata.annotations";
constexpr size_t kMaxMessageBytes = 4096;  // metav1 allows 32 KiB
constexpr size_t kNameStem = 31;           // of 40, before '-' and eight hexadecimal digits

std::string Shortened(std::string text) {
  if (text.size() <= kMaxMessageBytes) return text;
  size_t end = kMaxMessageBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "…";
}

bool IsTrue(const Json& object, const std::string& type) {
  return Text(kube::Condition(object, type), {"status"}) == "True";
}

// The conditions that are there, changed one by one; the time of one stays while it holds.
class Conditions {
 public:
  Conditions(const Json& object, absl::Time now)
      : generation_(Number(object, {"metadata", "generation"})),
        now_(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", now, absl::UTCTimeZone())) {
    const Json* list = FindAt(object, {"status", "conditions"});
    if (list != nullptr && list->is_array()) list_ = *list;
  }

  void Set(const char* type, bool holds, const std::string& reason, const std::string& message) {
    const char* status = holds ? "True" : "False";
    Json made = {{"type", type},
                 {"status", status},
                 {"reason", reason},
                 {"message", Shortened(message)},
                 {"lastTransitionTime", now_}};
    if (generation_ > 0) made["observedGeneration"] = generation_;
    for (Json& there : list_) {
      if (Text(there, {"type"}) != type) continue;
      const std::string since = Text(there, {"lastTransitionTime"});
      if (Text(there, {"status"}) == status && !since.empty()) made["lastTransitionTime"] = since;
      there = std::move(made);
      return;
    }
    list_.push_back(std::move(made));
  }

  Json Take() { return std::move(list_); }

 private:
  const int64_t generation_;
  const std::string now_;
  Json list_ = Json::array();
};

// Reasons are words in CamelCase; Katib's name the kind first.
std::string ReasonOf(const Json& condition, const char* otherwise) {
  std::string reason = Text(condition, {"reason"});
  if (absl::StartsWith(reason, "Experiment") && reason.size() > 10) reason = reason.substr(10);
  return reason.empty() ? otherwise : reason;
}

Json ResultOf(const Json& experiment) {
  const std::string best = Text(experiment, {"status", "currentOptimalTrial", "bestTrialName"});
  if (best.empty()) return nullptr;
  Json result = {{"trainJobName", best}};
  const Json* all = FindAt(experiment, {"status", "currentOptimalTrial", "parameterAssignments"});
  if (all == nullptr || !all->is_array()) return result;
  for (const Json& one : *all) {
    const std::string name = Text(one, {"name"}), value = Text(one, {"value"});
    if (name.empty() || value.empty()) continue;
    result["parameters"].push_back({{"name", name}, {"value", value}});
  }
  return result;
}

// What it says of itself that is worth a word: that it waits, or why its spec is not carried out.
std::string WordOf(const Json& experiment) {
  for (const char* field : {"specProblem", "waiting"}) {
    std::string text = Text(experiment, {"status", "shirabe", field});
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace

kube::Resource OptimizationJobs() {
  return {convert::kTrainerGroup, "v1alpha1", "optimizationjobs", convert::kOptimizationJob};
}

bool IsManaged(const Json& object) {
  return Text(object, {"metadata", "annotations", convert::kJobManagedBy}) == convert::kJobManager;
}

std::string ExperimentNameFor(const Json& object) {
  const std::string name = NameOf(object);
  if (ValidateExperimentName(name).ok()) return name;
  std::string stem = client::ExperimentNameFrom(name).substr(0, kNameStem);
  while (!stem.empty() && stem.back() == '-') stem.pop_back();
  return absl::StrFormat("%s-%08x", stem, static_cast<uint32_t>(Fingerprint(name)));
}

OptimizationRequest ReadOptimizationObject(const Json& object) {
  Json document = {{"apiVersion", convert::kTrainerVersion},
                   {"kind", convert::kOptimizationJob},
                   {"metadata", {{"name", NameOf(object)}, {"namespace", NamespaceOf(object)}}}};
  for (const char* field : {"labels", "annotations"}) {
    const Json* given = FindAt(object, {"metadata", field});
    if (given != nullptr && given->is_object()) document["metadata"][field] = *given;
  }
  for (const char* ours : {"shirabe.dev/created-by", "shirabe.dev/changed-by"}) {
    if (document["metadata"].contains("annotations"))
      document["metadata"]["annotations"].erase(ours);
  }
  if (const Json* spec = FindAt(object, {"spec"})) document["spec"] = *spec;
  const std::string name = ExperimentNameFor(object);
  // JSON is YAML.
  convert::Conversion read =
      convert::Convert(kube::Dump(document), {.from = convert::kJobFormat, .name = name});
  OptimizationRequest request{.in_annotations = true};
  const auto add = [&](const std::string& words) {
    const bool annotated = absl::StrContains(words, kAnnotations);
    request.in_annotations = request.in_annotations && annotated;
    request.problems.push_back(words);
  };
  for (const experiment::Finding& finding : read.findings) {
    if (!finding.warning) add(experiment::InWords(finding));
  }
  v1::Experiment& experiment = read.experiment;
  experiment.mutable_metadata()->set_name(name);
  experiment.mutable_metadata()->set_namespace_(NamespaceOf(object));
  const Status here =
      request.problems.empty() ? experiment::CheckVariants(experiment) : absl::OkStatus();
  if (!here.ok()) add(absl::StrCat(Message(here), " (from ", kAnnotations, ")"));
  request.in_annotations = request.in_annotations && !request.problems.empty();
  Json made = Json(experiment::ToTree(experiment));
  made.erase("status");
  const std::string print = absl::StrCat(absl::Hex(Fingerprint(kube::Dump(made["spec"]))));
  Json& metadata = made["metadata"];
  metadata["labels"][kOptimizationLabel] = name;
  metadata["labels"][kManagedLabel] = "true";
  metadata["annotations"][kOptimizationPrint] = print;
  metadata["ownerReferences"] = Json::array({{{"apiVersion", convert::kTrainerVersion},
                                              {"kind", convert::kOptimizationJob},
                                              {"name", NameOf(object)},
                                              {"uid", UidOf(object)},
                                              {"controller", true}}});
  request.experiment = std::move(made);
  return request;
}

Json SpecPatch(const Json& experiment, const Json& wanted) {
  Json spec = wanted.value("spec", Json::object());
  const Json* there = FindAt(experiment, {"spec"});
  if (there != nullptr && there->is_object()) {
    for (const auto& [field, value] : there->items()) {
      if (!spec.contains(field)) spec[field] = nullptr;
    }
  }
  return {
      {"metadata",
       {{"uid", UidOf(experiment)},
        {"annotations",
         {{kOptimizationPrint, Text(wanted, {"metadata", "annotations", kOptimizationPrint})}}}}},
      {"spec", std::move(spec)}};
}

bool HasEndedJob(const Json& object) {
  return IsTrue(object, "Complete") || IsTrue(object, "Failed");
}

Json OptimizationStatusJson(const Json& object, const OptimizationNews& news, absl::Time now) {
  const Json* there = FindAt(object, {"status"});
  Json status = there != nullptr && there->is_object() ? *there : Json::object();
  Conditions conditions(object, now);
  if (!news.experiment) {
    conditions.Set("Created", false, news.reason, news.message);
    if (news.failed) conditions.Set("Failed", true, news.reason, news.message);
    status["conditions"] = conditions.Take();
    return status;
  }
  const Json& experiment = *news.experiment;
  std::string message = absl::StrCat("experiment ", NameOf(experiment), " runs its trials");
  for (const std::string& more : {news.message, WordOf(experiment)}) {
    if (!more.empty()) absl::StrAppend(&message, "; ", more);
  }
  conditions.Set("Created", true, "ExperimentCreated", message);
  if (IsTrue(experiment, "Succeeded")) {
    const Json& end = kube::Condition(experiment, "Succeeded");
    conditions.Set("Complete", true, ReasonOf(end, "Succeeded"), Text(end, {"message"}));
  } else if (IsTrue(experiment, "Failed")) {
    const Json& end = kube::Condition(experiment, "Failed");
    conditions.Set("Failed", true, ReasonOf(end, "Failed"), Text(end, {"message"}));
  }
  status["conditions"] = conditions.Take();
  const Json result = ResultOf(experiment);
  if (!result.is_null()) status["result"] = result;
  return status;
}

}  // namespace shirabe::crd
