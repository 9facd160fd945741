#include "view/json_schema.h"

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/message_tree.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/http.pb.h"

namespace shirabe::view {
namespace {

using experiment::RuleOf;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr char kPreserve[] = "x-kubernetes-preserve-unknown-fields";
constexpr char kIntOrString[] = "x-kubernetes-int-or-string";

bool IsNumber(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
}

class SchemaWriter {
 public:
  explicit SchemaWriter(SchemaForm form) : form_(form) {}

  Json Object(const Descriptor& message) const {
    Json schema = {{"type", "object"}};
    if (structural()) schema[kPreserve] = true;
    Json required = Json::array();
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      if (RuleOf(field).internal()) continue;
      schema["properties"][field.json_name()] = Field(field);
      if (RuleOf(field).required() && !reported()) required.push_back(field.json_name());
    }
    if (!required.empty()) schema["required"] = required;
    return schema;
  }

 private:
  bool structural() const { return form_ != SchemaForm::kInterface; }
  bool reported() const { return form_ == SchemaForm::kReported; }

  // A structural schema has no other word for "a number or text" than for integers.
  Json Anything() const { return structural() ? Json{{kPreserve, true}} : Json::object(); }

  Json Number(const FieldDescriptor& field) const {
    const v1::FieldRule& rule = RuleOf(field);
    const bool integer = field.cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE;
    Json schema = {{"type", integer ? "integer" : "number"}};
    if (form_ == SchemaForm::kApplied) schema = integer ? Json{{kIntOrString, true}} : Anything();
    if (reported() && integer) schema["format"] = "int64";
    if (rule.text()) schema = structural() ? Anything() : Json{{"type", {"number", "string"}}};
    if (rule.has_min() && !reported()) schema["minimum"] = experiment::NumberTree(rule.min());
    return schema;
  }

  Json Enum(const FieldDescriptor& field) const {
    Json schema = {{"type", "string"}};
    if (!reported()) schema["enum"] = experiment::WordsOf(*field.enum_type());
    return schema;
  }

  Json Item(const FieldDescriptor& field) const {
    if (experiment::IsTimestamp(field)) return {{"type", "string"}, {"format", "date-time"}};
    if (experiment::IsValue(field)) return Anything();
    if (experiment::IsStruct(field)) {
      Json schema = {{"type", "object"}};
      schema.update(Anything());
      return schema;
    }
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return structural() ? Object(ShownAs(*field.message_type()))
                            : ReferenceTo(SchemaName(ShownAs(*field.message_type())));
      case FieldDescriptor::CPPTYPE_ENUM: return Enum(field);
      case FieldDescriptor::CPPTYPE_BOOL: return {{"type", "boolean"}};
      default: break;
    }
    if (IsNumber(field)) return Number(field);
    if (!RuleOf(field).loose()) return {{"type", "string"}};
    return structural() ? Anything() : Json{{"type", {"string", "number"}}};
  }

  Json Field(const FieldDescriptor& field) const {
    const v1::FieldRule& rule = RuleOf(field);
    Json schema = {{"description", rule.help()}};
    if (field.is_map()) {
      schema["type"] = "object";
      schema["additionalProperties"] = Item(*field.message_type()->map_value());
    } else if (field.is_repeated()) {
      schema["type"] = "array";
      schema["items"] = Item(field);
    } else {
      schema.update(Item(field));
    }
    if (!rule.default_().empty()) PutDefault(field, schema);
    if (form_ == SchemaForm::kApplied && !rule.required()) schema["nullable"] = true;
    if (!structural() && rule.required() && field.has_optional_keyword()) AllowNull(schema);
    return schema;
  }

  // Described, where it is no value of the type; and in Kubernetes always, so that the API server
  // does not write it into an object: what a user left open stays open.
  void PutDefault(const FieldDescriptor& field, Json& schema) const {
    const std::string& text = RuleOf(field).default_();
    const auto number = ParseNumber(text);
    const bool described = structural() || field.is_repeated() || experiment::IsValue(field) ||
                           experiment::IsTimestamp(field) || (IsNumber(field) && !number);
    if (described) {
      schema["description"] = absl::StrCat(RuleOf(field).help(), " (default: ", text, ")");
    } else if (RuleOf(field).required()) {
      schema["const"] = text;
    } else {
      schema["default"] = IsNumber(field) ? experiment::NumberTree(*number) : Json(text);
    }
  }

  static void AllowNull(Json& schema) {
    schema["type"] = {schema["type"], "null"};
    if (schema.contains("enum")) schema["enum"].push_back(nullptr);
  }

  const SchemaForm form_;
};

}  // namespace

Json SchemaOf(const Descriptor& message, SchemaForm form) {
  return SchemaWriter(form).Object(message);
}

const Descriptor& ShownAs(const Descriptor& message) {
  return &message == v1::Assignment::descriptor() ? *v1::http::TextAssignment::descriptor()
                                                  : message;
}

std::string SchemaName(const Descriptor& message) {
  // Katib's objects and our views of them may have one name.
  const bool view = message.file() == v1::http::Error::descriptor()->file() &&
                    v1::Experiment::descriptor()->file()->FindMessageTypeByName(message.name());
  return view ? message.name() + "View" : message.name();
}

Json ReferenceTo(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

}  // namespace shirabe::view
