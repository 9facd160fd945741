#include "service/http/openapi.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "experiment/spec/field_rules.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/http.pb.h"
#include "service/http/route_table.h"

namespace shirabe::service {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using view::Json;

Json Reference(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

// ---- schemas -----------------------------------------------------------------------------------

// A number that YAML writes as text may be either.
Json NumberSchema(const FieldDescriptor& field, const char* type) {
  const v1::FieldRule& rule = experiment::RuleOf(field);
  Json schema = {{"type", type}};
  // A metric's values are text in replies, as Katib has them.
  const bool text = rule.text() || field.containing_type() == v1::Metric::descriptor();
  if (text) schema["type"] = {type, "string"};
  if (rule.has_min()) schema["minimum"] = view::NumberJson(rule.min());
  return schema;
}

Json EnumSchema(const FieldDescriptor& field) {
  return {{"type", "string"}, {"enum", experiment::WordsOf(*field.enum_type())}};
}

Json ItemSchema(const FieldDescriptor& field) {
  if (experiment::IsTimestamp(field)) return {{"type", "string"}, {"format", "date-time"}};
  if (experiment::IsStruct(field)) return {{"type", "object"}};
  if (experiment::IsValue(field)) return Json::object();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: return Reference(SchemaName(*field.message_type()));
    case FieldDescriptor::CPPTYPE_ENUM: return EnumSchema(field);
    case FieldDescriptor::CPPTYPE_BOOL: return {{"type", "boolean"}};
    case FieldDescriptor::CPPTYPE_DOUBLE: return NumberSchema(field, "number");
    case FieldDescriptor::CPPTYPE_INT32: return NumberSchema(field, "integer");
    case FieldDescriptor::CPPTYPE_INT64: return NumberSchema(field, "integer");
    default: break;
  }
  if (experiment::RuleOf(field).loose()) return {{"type", {"string", "number"}}};
  return {{"type", "string"}};
}

// A default is text in the table: as a value where it is one of the type.
void PutDefault(const FieldDescriptor& field, Json& schema) {
  const std::string& text = experiment::RuleOf(field).default_();
  if (text.empty() || field.is_repeated()) return;
  const auto number = ParseNumber(text);
  const bool numeric = field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE ||
                       field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 ||
                       field.cpp_type() == FieldDescriptor::CPPTYPE_INT64;
  if (numeric && number) {
    schema["default"] = view::NumberJson(*number);
  } else if (numeric || experiment::IsValue(field)) {
    schema["description"] =
        absl::StrCat(schema["description"].get<std::string>(), " (default: ", text, ")");
  } else {
    schema["default"] = text;
  }
}

Json FieldSchema(const FieldDescriptor& field) {
  Json schema;
  if (field.is_map()) {
    schema = {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
  } else if (field.is_repeated()) {
    schema = {{"type", "array"}, {"items", ItemSchema(field)}};
  } else {
    schema = ItemSchema(field);
  }
  const v1::FieldRule& rule = experiment::RuleOf(field);
  schema["description"] = rule.help();
  PutDefault(field, schema);
  return schema;
}

// The messages that requests are made of refuse what they do not know.
bool IsStrict(const Descriptor& message) {
  const std::string name = message.full_name();
  if (absl::EndsWith(name, "Request") || absl::EndsWith(name, ".TellPoint")) return true;
  return message.file() == v1::Experiment::descriptor()->file() &&
         !absl::StrContains(name, "Status") && !absl::StrContains(name, "Condition");
}

// ---- parameters --------------------------------------------------------------------------------

Json ParameterSchema(const Parameter& parameter) {
  Json schema = Json::object();
  switch (parameter.type) {
    case Parameter::Type::kText: schema["type"] = "string"; break;
    case Parameter::Type::kBoolean: schema["type"] = "boolean"; break;
    case Parameter::Type::kInteger:
      schema["type"] = "integer";
      schema["minimum"] = parameter.min;
      if (parameter.max > parameter.min) schema["maximum"] = parameter.max;
      break;
  }
  if (!parameter.words.empty()) schema["enum"] = parameter.words;
  if (parameter.default_value.empty()) return schema;
  int64_t number = 0;
  if (parameter.type == Parameter::Type::kInteger &&
      absl::SimpleAtoi(parameter.default_value, &number)) {
    schema["default"] = number;
  } else {
    schema["default"] = parameter.default_value;
  }
  return schema;
}

Json ParameterJson(const Parameter& parameter) {
  static constexpr const char* kPlaces[] = {"path", "query", "header"};
  Json json = {{"name", parameter.name},
               {"in", kPlaces[static_cast<int>(parameter.in)]},
               {"description", parameter.help},
               {"schema", ParameterSchema(parameter)}};
  if (parameter.in == Parameter::In::kPath) json["required"] = true;
  return json;
}

Json ParametersJson(const Route& route) {
  Json list = Json::array();
  for (const Parameter& parameter : PathParameters(route.path)) {
    list.push_back(ParameterJson(parameter));
  }
  for (const Parameter& parameter : route.parameters) list.push_back(ParameterJson(parameter));
  return list;
}

// ---- operations --------------------------------------------------------------------------------

std::string ListName(const Descriptor& item) { return SchemaName(item) + "List"; }

Json ListSchema(const Descriptor& item) {
  return {{"type", "object"},
          {"required", {"apiVersion", "kind", "items"}},
          {"properties",
           {{"apiVersion", {{"const", "v1"}}},
            {"kind", {{"const", "List"}}},
            {"items", {{"type", "array"}, {"items", Reference(SchemaName(item))}}},
            {"nextPageToken",
             {{"type", "string"}, {"description", "pageToken of the next page; absent: no more"}}},
            {"revision",
             {{"type", "integer"}, {"description", "to watch from, without missing a change"}}}}}};
}

// What an event stream carries stands in its description: OpenAPI has no word for it.
Json ResultJson(const Result& result, const Route& route) {
  Json json = {{"description", route.summary}};
  if (result.type.empty()) return json;
  Json media = Json::object();
  if (result.type == "application/json") {
    media["schema"] = result.body == nullptr ? Json{{"type", "object"}}
                      : result.list          ? Reference(ListName(*result.body))
                                             : Reference(SchemaName(*result.body));
  } else {
    media["schema"] = {{"type", "string"}};
    if (result.body != nullptr) {
      media["schema"]["description"] = "events whose data is a " + SchemaName(*result.body);
    }
  }
  json["content"] = {{result.type, media}};
  return json;
}

Json ErrorResult(const char* description) {
  return {{"description", description},
          {"content", {{"application/json", {{"schema", Reference("Error")}}}}}};
}

void PutErrors(const Route& route, Json& responses) {
  if (route.access != Route::Access::kOpen || !route.parameters.empty()) {
    responses["400"] = ErrorResult("something in the request is not as it should be");
  }
  if (route.access == Route::Access::kOpen) return;
  responses["401"] = ErrorResult("there is no token");
  responses["403"] = ErrorResult("the token is not for this");
  if (absl::StrContains(route.path, "{name}")) responses["404"] = ErrorResult("it is not there");
  if (route.method != "GET") {
    responses["409"] = ErrorResult("it is there already, or in a state that does not allow this");
    responses["412"] = ErrorResult("If-Match or If-None-Match does not hold");
    responses["413"] = ErrorResult("the body is too large");
    responses["415"] = ErrorResult("the body is of a type that is not read here");
  }
  if (absl::StrContains(route.path, "watch")) {
    responses["410"] = ErrorResult("the revision is not of this store: list again");
  }
  if (route.slow) responses["504"] = ErrorResult("it takes longer than was asked for");
  responses["429"] = ErrorResult("too many requests in a second: wait");
  responses["503"] = ErrorResult("the store cannot be reached, or is full: try again");
}

Json OperationJson(const Route& route) {
  Json operation = {
      {"operationId", route.id}, {"summary", route.summary}, {"parameters", ParametersJson(route)}};
  if (route.request != nullptr) {
    Json content = Json::object();
    const Json schema = {{"schema", Reference(SchemaName(*route.request))}};
    if (route.method == "PATCH") {
      content["application/merge-patch+json"] = {{"schema", {{"type", "object"}}}};
    } else {
      content["application/json"] = schema;
      content["application/yaml"] = schema;
    }
    operation["requestBody"] = {{"required", true}, {"content", content}};
  }
  Json responses = Json::object();
  for (const Result& result : route.results) {
    Json& response = responses[std::to_string(result.status)];
    Json made = ResultJson(result, route);
    if (response.contains("content")) made["content"].update(response["content"]);
    response = made;
  }
  PutErrors(route, responses);
  operation["responses"] = responses;
  if (route.access == Route::Access::kOpen) operation["security"] = Json::array();
  return operation;
}

void AddShapes(const Route& route, Json& schemas) {
  if (route.request != nullptr) AddSchemas(*route.request, schemas);
  for (const Result& result : route.results) {
    if (result.body == nullptr) continue;
    AddSchemas(*result.body, schemas);
    if (result.list) schemas[ListName(*result.body)] = ListSchema(*result.body);
  }
}

}  // namespace

std::string SchemaName(const Descriptor& message) {
  // Typed in the records, and text wherever people and programs see it.
  if (&message == v1::Assignment::descriptor()) return "TextAssignment";
  // Katib's objects and our views of them may have one name.
  const bool reply = message.file() == v1::http::Error::descriptor()->file();
  const bool shared = reply && v1::Experiment::descriptor()->file()->FindMessageTypeByName(
                                   message.name()) != nullptr;
  return shared ? message.name() + "View" : message.name();
}

void AddSchemas(const Descriptor& message, Json& schemas) {
  if (&message == v1::Assignment::descriptor()) {
    return AddSchemas(*v1::http::TextAssignment::descriptor(), schemas);
  }
  const std::string name = SchemaName(message);
  if (schemas.contains(name)) return;
  schemas[name] = Json::object();
  Json schema = {{"type", "object"}};
  Json required = Json::array();
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const v1::FieldRule& rule = experiment::RuleOf(field);
    if (rule.internal()) continue;
    schema["properties"][field.json_name()] = FieldSchema(field);
    if (rule.required()) required.push_back(field.json_name());
    if (experiment::IsNested(field)) AddSchemas(*field.message_type(), schemas);
  }
  if (!required.empty()) schema["required"] = required;
  if (IsStrict(message)) schema["additionalProperties"] = false;
  schemas[name] = schema;
}

Json OpenapiDocument() {
  Json paths = Json::object();
  Json schemas = Json::object();
  AddSchemas(*v1::http::Error::descriptor(), schemas);
  for (const Route& route : Routes()) {
    std::string method = route.method;
    for (char& c : method) c = static_cast<char>(c - 'A' + 'a');
    paths[route.path][method] = OperationJson(route);
    AddShapes(route, schemas);
  }
  return {{"openapi", "3.1.0"},
          {"info",
           {{"title", "Shirabe"},
            {"version", SHIRABE_VERSION},
            {"description", "Hyperparameter tuning: experiments, trials, attempts."}}},
          {"security", Json::array({{{"bearer", Json::array()}}})},
          {"paths", paths},
          {"components",
           {{"securitySchemes", {{"bearer", {{"type", "http"}, {"scheme", "bearer"}}}}},
            {"schemas", schemas}}}};
}

}  // namespace shirabe::service
