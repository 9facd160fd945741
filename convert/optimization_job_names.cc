// What is said of an OptimizationJob in one place: variables, and parts of files as values.
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "convert/optimization_job.h"

namespace shirabe::convert {
namespace {

constexpr char kVariablePrefix[] = "KUBEFLOW_TRAINER_OPT_";

}  // namespace

std::string JobVariable(const std::string& parameter) {
  return absl::StrCat(kVariablePrefix, parameter);
}

std::vector<std::pair<std::string, std::string>> JobVariables(
    const google::protobuf::RepeatedPtrField<v1::ParameterSpec>& parameters) {
  std::map<std::string, int> owners;  // how many would have a variable of that name
  for (const v1::ParameterSpec& parameter : parameters) {
    const std::string upper = absl::AsciiStrToUpper(parameter.name());
    ++owners[parameter.name()];
    if (upper != parameter.name()) ++owners[upper];
  }
  std::vector<std::pair<std::string, std::string>> variables;
  for (const v1::ParameterSpec& parameter : parameters) {
    variables.emplace_back(JobVariable(parameter.name()), parameter.name());
    const std::string upper = absl::AsciiStrToUpper(parameter.name());
    if (upper != parameter.name() && owners[upper] == 1) {
      variables.emplace_back(JobVariable(upper), parameter.name());
    }
  }
  return variables;
}

std::string WhyNoVariable(const std::string& parameter) {
  for (const char c : parameter) {
    if (absl::ascii_isprint(c) && c != '=') continue;
    return "cannot be part of the name of an environment variable, which has printable ASCII "
           "characters without '=': rename it";
  }
  return "";
}

google::protobuf::Value ProtoValue(const YamlNode& node) {
  google::protobuf::Value value;
  switch (node.kind) {
    case YamlNode::Kind::kNull: value.set_null_value(google::protobuf::NULL_VALUE); break;
    case YamlNode::Kind::kBoolean: value.set_bool_value(node.boolean); break;
    case YamlNode::Kind::kNumber: value.set_number_value(node.number); break;
    case YamlNode::Kind::kString: value.set_string_value(node.text); break;
    case YamlNode::Kind::kSequence:
      value.mutable_list_value();
      for (const YamlNode& item : node.items) {
        *value.mutable_list_value()->add_values() = ProtoValue(item);
      }
      break;
    case YamlNode::Kind::kMapping: {
      auto& fields = *value.mutable_struct_value()->mutable_fields();
      auto item = node.items.begin();
      for (const YamlNode& key : node.keys) fields[key.text] = ProtoValue(*item++);
    }
  }
  return value;
}

nlohmann::ordered_json JsonValue(const YamlNode& node) {
  using OrderedJson = nlohmann::ordered_json;
  switch (node.kind) {
    case YamlNode::Kind::kNull: return nullptr;
    case YamlNode::Kind::kBoolean: return node.boolean;
    case YamlNode::Kind::kNumber:
      return node.integer ? OrderedJson(*node.integer) : OrderedJson(node.number);
    case YamlNode::Kind::kString: return node.text;
    case YamlNode::Kind::kSequence: {
      OrderedJson list = OrderedJson::array();
      for (const YamlNode& item : node.items) list.push_back(JsonValue(item));
      return list;
    }
    case YamlNode::Kind::kMapping: break;
  }
  OrderedJson mapping = OrderedJson::object();
  auto item = node.items.begin();
  for (const YamlNode& key : node.keys) mapping[key.text] = JsonValue(*item++);
  return mapping;
}

}  // namespace shirabe::convert
