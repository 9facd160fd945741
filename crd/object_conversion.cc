#include "crd/object_conversion.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "base/text/yaml_tree.h"
#include "crd/resource_kinds.h"
#include "experiment/attempt_request.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/local_support.h"
#include "experiment/spec/message_tree.h"
#include "experiment/spec/parse_spec.h"
#include "kube/json_access.h"

namespace shirabe::crd {
namespace {

using kube::Json;

// What kubectl keeps in annotations for itself would only make the record larger.
constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";

// The API server has more in metadata than an experiment has; what people wrote there is kept.
Json MetadataOf(const Json& object) {
  Json metadata = {{"name", NameOf(object)}, {"namespace", NamespaceOf(object)}};
  const Json& from = object.at("metadata");
  for (const char* key : {"labels", "annotations"}) {
    if (from.contains(key) && from.at(key).is_object()) metadata[key] = from.at(key);
  }
  if (metadata.contains("annotations")) metadata["annotations"].erase(kLastApplied);
  return metadata;
}

Json ScalarJson(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: return nullptr;
    case YamlNode::Kind::kBoolean: return node.boolean;
    case YamlNode::Kind::kNumber: return node.integer ? Json(*node.integer) : Json(node.number);
    default: return node.text;
  }
}

// Not deeper than the parser of YAML allows.
Json TreeJson(const YamlNode& node) {
  if (node.IsScalar()) return ScalarJson(node);
  if (node.kind == YamlNode::Kind::kSequence) {
    Json list = Json::array();
    for (const YamlNode& item : node.items) list.push_back(TreeJson(item));
    return list;
  }
  Json mapping = Json::object();
  auto item = node.items.begin();
  for (const YamlNode& key : node.keys) mapping[key.text] = TreeJson(*item++);
  return mapping;
}

const Json* TemplateOf(const Json& object) { return FindAt(object, {"spec", "trialTemplate"}); }

constexpr char kDoor[] = "kubernetes";
constexpr char kBinding[] = "shirabe-actors";

v1::Actor Named(const std::string& name) {
  v1::Actor actor;
  actor.set_name(name);
  actor.set_door(kDoor);
  return actor;
}

bool PolicyIsThere(kube::Client& client) {
  const kube::Resource bindings{"admissionregistration.k8s.io", "v1",
                                "validatingadmissionpolicybindings",
                                "ValidatingAdmissionPolicyBinding", /*namespaced=*/false};
  return client.Get({bindings, "", kBinding}).ok();
}

// A copy from a watch has no managedFields (kube/watch_cache.h); the API server has.
Json ManagersOf(kube::Client& client, const Json& object) {
  const auto whole = client.Get({Experiments(), NamespaceOf(object), NameOf(object)});
  const Json* managers = FindAt(whole.ok() && UidOf(*whole) == UidOf(object) ? *whole : object,
                                {"metadata", "managedFields"});
  return managers != nullptr && managers->is_array() ? *managers : Json::array();
}

// The manager that wrote the specification first, or last: a program, not a person. Their times
// have whole seconds, in UTC.
std::string ProgramOf(const Json& managers, bool first) {
  std::string program, time;
  for (const Json& manager : managers) {
    const Json* spec = FindAt(manager, {"fieldsV1", "f:spec"});
    if (spec == nullptr || !Text(manager, {"subresource"}).empty()) continue;
    const std::string at = Text(manager, {"time"});
    if (!program.empty() && (first ? at >= time : at < time)) continue;
    program = Text(manager, {"manager"});
    time = at;
  }
  return program;
}

}  // namespace

ConvertedObject ConvertObject(const Json& object) {
  Json document = object;
  document.erase("status");
  document["metadata"] = MetadataOf(object);
  ConvertedObject admission;
  // JSON is YAML.
  const std::string text = kube::Dump(document);
  for (auto& parsed : experiment::ParseExperiments(text)) {
    // The line and column of a text that the user has not seen say nothing.
    for (const experiment::Finding& finding : parsed.findings) {
      (finding.warning ? admission.warnings : admission.problems).push_back(InWords(finding));
    }
    admission.experiment = std::move(parsed.experiment);
  }
  if (admission.problems.empty()) {
    const Status here = experiment::CheckVariants(admission.experiment);
    if (!here.ok()) admission.problems.push_back(Message(here));
  }
  (*admission.experiment.mutable_metadata()->mutable_annotations())[experiment::kObjectUid] =
      UidOf(object);
  return admission;
}

std::optional<TemplateSource> FindTemplateSource(const Json& object) {
  const Json* trial_template = TemplateOf(object);
  if (trial_template == nullptr || trial_template->contains("trialSpec")) return std::nullopt;
  const Json* source = FindAt(*trial_template, {"configMap"});
  if (source == nullptr) return std::nullopt;
  TemplateSource found{Text(*source, {"configMapNamespace"}), Text(*source, {"configMapName"}),
                       Text(*source, {"templatePath"})};
  if (found.name.empty() || found.key.empty()) return std::nullopt;
  if (found.namespace_name.empty()) found.namespace_name = NamespaceOf(object);
  return found;
}

StatusOr<Json> WithTemplate(Json object, const TemplateSource& source, const Json& config_map) {
  const std::string shown = absl::StrCat("spec.trialTemplate.configMap: ConfigMap ",
                                         source.namespace_name, "/", source.name);
  const Json* data = FindAt(config_map, {"data"});
  if (data == nullptr || !data->contains(source.key) || !data->at(source.key).is_string()) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, " has no key \"", source.key, "\": correct templatePath, or add it"));
  }
  const auto documents = ParseYaml(data->at(source.key).get_ref<const std::string&>());
  if (documents.size() != 1 || !documents[0].problems.empty() ||
      documents[0].root.kind != YamlNode::Kind::kMapping) {
    const bool broken = documents.size() == 1 && !documents[0].problems.empty();
    return absl::InvalidArgumentError(
        absl::StrCat(shown, ", key \"", source.key, "\", is not an object in YAML",
                     broken ? ": " + documents[0].problems[0].message : ""));
  }
  Json& trial_template = object["spec"]["trialTemplate"];
  trial_template["trialSpec"] = TreeJson(documents[0].root);
  trial_template.erase("configMap");
  return object;
}

Json WithTemplateOf(Json object, const v1::Experiment& stored) {
  Json& trial_template = object["spec"]["trialTemplate"];
  trial_template["trialSpec"] =
      Json(experiment::ToTree(stored.spec().trial_template().trial_spec()));
  trial_template.erase("configMap");
  return object;
}

v1::Actor ActorOf(kube::Client& client, const Json& object, const char* annotation) {
  const std::string user = Text(object, {"metadata", "annotations", annotation});
  if (!user.empty() && PolicyIsThere(client)) return Named(user);
  const std::string program =
      ProgramOf(ManagersOf(client, object), std::string_view(annotation) == kCreatedBy);
  return Named(program.empty() ? "an unnamed user" : "an unnamed user of " + program);
}

v1::Actor UnnamedDeleter() { return Named("the unnamed user who deleted its object"); }

}  // namespace shirabe::crd
