#include "crd/schema.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "client/view.h"
#include "experiment/schema.h"

namespace shirabe::crd {
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
  if (rule.has_min()) schema["minimum"] = client::NumberJson(rule.min());
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
