#include "service/http/openapi.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "experiment/spec/field_rules.h"
#include "proto/shirabe/v1/http.pb.h"
#include "service/http/route_table.h"
#include "view/chart_json.h"

namespace shirabe::service {
namespace {

using google::protobuf::Descriptor;
using view::Json;
using view::SchemaName;

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

// Whether If-None-Match saves the body of its reply (etag.h). The tag of an experiment is for
// If-Match: its status changes while the tag stays.
bool HasContentTag(const Route& route) {
  if (route.method != "GET" || route.at_once || route.path == kExperimentPath) return false;
  return std::any_of(route.results.begin(), route.results.end(), [](const Result& result) {
    return result.type == "application/json" || result.type == view::kColumnsType;
  });
}

Json ParametersJson(const Route& route) {
  Json list = Json::array();
  for (const Parameter& parameter : PathParameters(route.path)) {
    list.push_back(ParameterJson(parameter));
  }
  for (const Parameter& parameter : route.parameters) list.push_back(ParameterJson(parameter));
  if (HasContentTag(route)) {
    list.push_back(ParameterJson({.name = "If-None-Match",
                                  .help = "the ETag of an earlier reply",
                                  .in = Parameter::In::kHeader}));
  }
  return list;
}

// ---- operations --------------------------------------------------------------------------------

std::string ListName(const Descriptor& item) { return SchemaName(item) + "List"; }

Json ListSchema(const Descriptor& item) {
  Json schema = view::SchemaOf(*v1::http::List::descriptor(), view::SchemaForm::kInterface);
  schema["properties"]["items"]["items"] = view::ReferenceTo(SchemaName(item));
  return schema;
}

// OpenAPI 3.1 has no word for what an event stream carries.
constexpr char kEventData[] = "x-event-data";

Json ResultJson(const Result& result, const Route& route) {
  Json json = {{"description", route.summary}};
  if (result.type.empty()) return json;
  Json media = Json::object();
  if (result.type == "application/json") {
    media["schema"] = result.body == nullptr ? Json{{"type", "object"}}
                      : result.list          ? view::ReferenceTo(ListName(*result.body))
                                             : view::ReferenceTo(SchemaName(*result.body));
  } else {
    media["schema"] = {{"type", "string"}};
    if (result.body != nullptr) media[kEventData] = view::ReferenceTo(SchemaName(*result.body));
  }
  json["content"] = {{result.type, media}};
  return json;
}

Json ErrorResult(const char* description) {
  return {{"description", description},
          {"content", {{"application/json", {{"schema", view::ReferenceTo("Error")}}}}}};
}

void PutErrors(const Route& route, Json& responses) {
  if (HasContentTag(route)) {
    responses["304"] = {{"description", "nothing has changed since that ETag"}};
  }
  if (!route.open() || !route.parameters.empty()) {
    responses["400"] = ErrorResult("something in the request is not as it should be");
  }
  if (route.open()) return;
  responses["401"] = ErrorResult("there is no token");
  responses["403"] = ErrorResult("the token is not for this");
  if (absl::StrContains(route.path, "{name}")) responses["404"] = ErrorResult("it is not there");
  if (route.method != "GET") {
    responses["409"] = ErrorResult("it is there already, or in a state that does not allow this");
    responses["412"] = ErrorResult("If-Match or If-None-Match does not hold");
    responses["413"] = ErrorResult("the body is too large");
    responses["415"] = ErrorResult("the body is of a type that is not read here");
  }
  const bool by_revision =
      std::any_of(route.parameters.begin(), route.parameters.end(),
                  [](const Parameter& one) { return one.name == "after" || one.name == "since"; });
  if (by_revision) {
    responses["410"] = ErrorResult("the revision is not of this store: list again");
  }
  const bool by_range = std::any_of(route.parameters.begin(), route.parameters.end(),
                                    [](const Parameter& one) { return one.name == "Range"; });
  if (by_range) {
    responses["304"] = {{"description", "nothing has changed since that ETag"}};
    responses["416"] = ErrorResult("it has no such part");
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
    const Json schema = {{"schema", view::ReferenceTo(SchemaName(*route.request))}};
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
  if (route.open()) operation["security"] = Json::array();
  return operation;
}

// ---- schemas -----------------------------------------------------------------------------------

// Of all bodies and what they refer to. What requests are made of refuses fields that it does not
// have; replies may get new ones.
class Schemas {
 public:
  void Add(const Descriptor& message, bool request) {
    const std::string name = SchemaName(message);
    const auto [owner, is_new] = owners_.emplace(name, &message);
    CHECK(owner->second == &message);  // else two messages have one name
    if (!is_new && (!request || schemas_[name].contains(kOtherFields))) return;
    if (is_new) schemas_[name] = view::SchemaOf(message, view::SchemaForm::kInterface);
    if (request) schemas_[name][kOtherFields] = false;
    for (int i = 0; i < message.field_count(); ++i) {
      const auto& field = *message.field(i);
      const v1::FieldRule& rule = experiment::RuleOf(field);
      if (rule.internal() || !experiment::IsNested(field)) continue;
      Add(view::ShownAs(*field.message_type()), request && !rule.ignored());
    }
  }
  void Add(const Route& route) {
    if (route.request != nullptr) Add(*route.request, true);
    for (const Result& result : route.results) {
      if (result.body == nullptr) continue;
      Add(*result.body, false);
      if (result.list) schemas_[ListName(*result.body)] = ListSchema(*result.body);
    }
  }
  const Json& json() const { return schemas_; }

 private:
  static constexpr char kOtherFields[] = "additionalProperties";
  Json schemas_ = Json::object();
  std::map<std::string, const Descriptor*> owners_;
};

}  // namespace

Json OpenapiDocument() {
  Json paths = Json::object();
  Schemas schemas;
  schemas.Add(*v1::http::Error::descriptor(), false);
  for (const Route& route : Routes()) {
    paths[route.path][absl::AsciiStrToLower(route.method)] = OperationJson(route);
    schemas.Add(route);
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
            {"schemas", schemas.json()}}}};
}

}  // namespace shirabe::service
