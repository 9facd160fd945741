#include "crd/definitions.h"

#include <cctype>
#include <string>

#include "absl/strings/str_cat.h"
#include "experiment/spec/field_rules.h"
#include "proto/shirabe/v1/crd.pb.h"
#include "view/record_json.h"

namespace shirabe::crd {
namespace {

using google::protobuf::Descriptor;

struct Column {
  const char* name;
  const char* type;
  const char* path;
  const char* description;
  int priority = 0;  // 0 = always shown, 1 = with -o wide
};

struct Kind {
  const char* singular;
  const Descriptor* message;
  std::vector<Column> columns;
};

// Katib's two, which stand first: the condition that was set last.
const Column kType{"Type", "string", ".status.conditions[-1:].type", "the current condition"};
const Column kStatus{"Status", "string", ".status.conditions[-1:].status", "whether it holds"};
const Column kAge{"Age", "date", ".metadata.creationTimestamp", "since it was created"};

Kind ExperimentKind() {
  return {"experiment",
          v1::crd::Experiment::descriptor(),
          {kType,
           kStatus,
           {"Best", "string", ".status.shirabe.best", "the best objective so far"},
           {"Trials", "integer", ".status.trials", "trials created so far"},
           {"Running", "integer", ".status.trialsRunning", "trials that run"},
           {"Failed", "integer", ".status.trialsFailed", "trials that failed"},
           {"Preempted", "integer", ".status.shirabe.preemptions",
            "attempts lost to the platform; no failures"},
           {"Best Trial", "string", ".status.currentOptimalTrial.bestTrialName", "its name", 1},
           {"Cost", "number", ".status.shirabe.cost", "of all attempts", 1},
           {"Waiting", "string", ".status.shirabe.waiting", "why nothing starts", 1},
           kAge}};
}

Kind SuggestionKind() {
  return {"suggestion",
          v1::crd::Suggestion::descriptor(),
          {kType,
           kStatus,
           {"Requested", "integer", ".spec.requests", "points asked for"},
           {"Assigned", "integer", ".status.suggestionCount", "points given"},
           {"Algorithm", "string", ".spec.algorithm.algorithmName", "how it searches", 1},
           kAge}};
}

Kind TrialKind() {
  return {"trial",
          v1::crd::Trial::descriptor(),
          {kType,
           kStatus,
           {"Objective", "string", ".status.shirabe.objective", "its result"},
           {"Attempts", "integer", ".status.shirabe.attempts", "executions so far"},
           {"Preempted", "integer", ".status.shirabe.preemptions", "lost to the platform"},
           {"Step", "integer", ".status.shirabe.lastStep", "the greatest observed", 1},
           {"Waiting", "string", ".status.shirabe.waiting", "why it is not running", 1},
           kAge}};
}

OrderedJson ColumnJson(const Column& column) {
  OrderedJson json = {{"name", column.name},
                      {"type", column.type},
                      {"jsonPath", column.path},
                      {"description", column.description}};
  if (column.priority > 0) json["priority"] = column.priority;
  return json;
}

// People write experiments; the rest is ours. The status is ours everywhere.
OrderedJson SchemaOf(const Kind& kind) {
  const bool ours = kind.message != v1::crd::Experiment::descriptor();
  OrderedJson schema = {
      {"type", "object"},
      {"description", std::string("a Katib-compatible ") + kind.singular + " of Shirabe"},
      {"properties",
       {{"apiVersion", {{"type", "string"}}},
        {"kind", {{"type", "string"}}},
        {"metadata", {{"type", "object"}}}}}};
  OrderedJson made = StructuralSchema(*kind.message, ours);
  OrderedJson& properties = schema["properties"];
  properties["spec"] = made["properties"]["spec"];
  const OrderedJson all_ours = StructuralSchema(*kind.message, true);
  properties["status"] = all_ours["properties"]["status"];
  if (!ours) schema["required"] = {"spec"};
  // Beside the spec as well, so that `sepc:` is found, and found out.
  schema["x-kubernetes-preserve-unknown-fields"] = true;
  return schema;
}

Definition DefinitionOf(const Kind& kind) {
  const std::string singular = kind.singular;
  const std::string plural = singular + "s";
  std::string title = singular;
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  OrderedJson columns = OrderedJson::array();
  for (const Column& column : kind.columns) columns.push_back(ColumnJson(column));
  const OrderedJson names = {{"kind", title},
                             {"listKind", title + "List"},
                             {"plural", plural},
                             {"singular", singular},
                             {"categories", {"all", "kubeflow", "katib"}}};
  const OrderedJson version = {{"name", "v1beta1"},
                               {"served", true},
                               {"storage", true},
                               {"subresources", {{"status", OrderedJson::object()}}},
                               {"additionalPrinterColumns", columns},
                               {"schema", {{"openAPIV3Schema", SchemaOf(kind)}}}};
  return {plural,
          {{"apiVersion", "apiextensions.k8s.io/v1"},
           {"kind", "CustomResourceDefinition"},
           {"metadata",
            {{"name", plural + ".kubeflow.org"},
             {"labels", {{"app.kubernetes.io/name", "shirabe"}, {kPartOfLabel, kPartOf}}}}},
           {"spec",
            {{"group", "kubeflow.org"},
             {"scope", "Namespaced"},
             {"names", names},
             {"versions", OrderedJson::array({version})}}}}};
}

}  // namespace

std::vector<Definition> Definitions() {
  return {DefinitionOf(ExperimentKind()), DefinitionOf(SuggestionKind()),
          DefinitionOf(TrialKind())};
}

namespace {

using google::protobuf::FieldDescriptor;

constexpr char kPreserve[] = "x-kubernetes-preserve-unknown-fields";
constexpr char kIntOrString[] = "x-kubernetes-int-or-string";

// Any value at all: a structural schema has no other word for "a number or text" than for integers.
OrderedJson AnySchema() { return {{kPreserve, true}}; }

OrderedJson NumberSchema(const FieldDescriptor& field, bool written_by_us) {
  const bool integer = field.cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE;
  if (written_by_us) {
    if (!integer) return {{"type", "number"}};
    return {{"type", "integer"}, {"format", "int64"}};
  }
  OrderedJson schema = integer ? OrderedJson{{kIntOrString, true}} : AnySchema();
  const v1::FieldRule& rule = experiment::RuleOf(field);
  if (rule.has_min()) schema["minimum"] = view::NumberJson(rule.min());
  return schema;
}

OrderedJson EnumSchema(const FieldDescriptor& field) {
  return {{"type", "string"}, {"enum", experiment::WordsOf(*field.enum_type())}};
}

OrderedJson ItemSchema(const FieldDescriptor& field, bool written_by_us) {
  if (experiment::IsTimestamp(field)) return {{"type", "string"}, {"format", "date-time"}};
  if (experiment::IsStruct(field)) return {{"type", "object"}, {kPreserve, true}};
  if (experiment::IsValue(field)) return AnySchema();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return StructuralSchema(*field.message_type(), written_by_us);
    case FieldDescriptor::CPPTYPE_ENUM: return EnumSchema(field);
    case FieldDescriptor::CPPTYPE_BOOL: return {{"type", "boolean"}};
    case FieldDescriptor::CPPTYPE_STRING: break;
    default: return NumberSchema(field, written_by_us);
  }
  if (experiment::RuleOf(field).loose()) return AnySchema();
  return {{"type", "string"}};
}

// A default is told, not written into the object: what a person left open stays open.
std::string Description(const v1::FieldRule& rule) {
  if (rule.default_().empty()) return rule.help();
  return absl::StrCat(rule.help(), " (default: ", rule.default_(), ")");
}

OrderedJson FieldSchema(const FieldDescriptor& field, bool written_by_us) {
  const v1::FieldRule& rule = experiment::RuleOf(field);
  OrderedJson schema = {{"description", Description(rule)}};
  if (field.is_map()) {
    schema["type"] = "object";
    schema["additionalProperties"] = {{"type", "string"}};
  } else if (field.is_repeated()) {
    schema["type"] = "array";
    schema["items"] = ItemSchema(field, written_by_us);
  } else {
    schema.update(ItemSchema(field, written_by_us));
  }
  if (!written_by_us && !rule.required()) schema["nullable"] = true;
  return schema;
}

}  // namespace

OrderedJson StructuralSchema(const google::protobuf::Descriptor& message, bool written_by_us) {
  OrderedJson schema = {{"type", "object"}, {kPreserve, true}};
  OrderedJson required = OrderedJson::array();
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const v1::FieldRule& rule = experiment::RuleOf(field);
    if (rule.internal()) continue;
    schema["properties"][field.json_name()] = FieldSchema(field, written_by_us);
    if (!written_by_us && rule.required()) required.push_back(field.json_name());
  }
  if (!required.empty()) schema["required"] = required;
  return schema;
}

}  // namespace shirabe::crd
