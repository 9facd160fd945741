#include "experiment/spec/message_tree.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "base/names.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/parse_spec.h"
#include "trial/trial_template.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::FieldDescriptor;
using Proto = google::protobuf::Message;
using google::protobuf::Struct;
using google::protobuf::Value;

// Adds a key that is not there yet; tree[key] would look for it through all of them.
void Append(Json& tree, const std::string& key, Json value) {
  tree.get_ref<Json::object_t&>().emplace_back(key, std::move(value));
}

Json FreeTree(const Value& value);

Json StructTree(const Struct& object) {
  std::map<std::string, const Value*> sorted;
  for (const auto& [key, value] : object.fields()) sorted.emplace(key, &value);
  Json tree = Json::object();
  for (const auto& [key, value] : sorted) Append(tree, key, FreeTree(*value));
  return tree;
}

Json FreeTree(const Value& value) {
  switch (value.kind_case()) {
    case Value::kNumberValue: return NumberTree(value.number_value());
    case Value::kStringValue: return value.string_value();
    case Value::kBoolValue: return value.bool_value();
    case Value::kStructValue: return StructTree(value.struct_value());
    case Value::kListValue: {
      Json list = Json::array();
      for (const Value& item : value.list_value().values()) list.push_back(FreeTree(item));
      return list;
    }
    default: return nullptr;
  }
}

// Katib's shape: {name, value}, the value as text.
Json AssignmentTree(const v1::Assignment& assignment) {
  Json tree = Json::object();
  tree["name"] = assignment.name();
  tree["value"] = trial::FormatAssignment(assignment);
  return tree;
}

std::string EnumText(const google::protobuf::EnumValueDescriptor& value) {
  const std::string word = WordOf(value);
  return word.empty() ? value.name() : word;
}

// One value of a field; `index` is that of a repeated field, -1 for another.
Json ItemTree(const Proto& message, const FieldDescriptor& field, int index) {
  const auto& r = *message.GetReflection();
  const bool item = index >= 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return item ? r.GetRepeatedString(message, &field, index) : r.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value =
          item ? r.GetRepeatedDouble(message, &field, index) : r.GetDouble(message, &field);
      return RuleOf(field).text() ? Json(FormatNumber(value)) : NumberTree(value);
    }
    case FieldDescriptor::CPPTYPE_INT32:
      return item ? r.GetRepeatedInt32(message, &field, index) : r.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return item ? r.GetRepeatedInt64(message, &field, index) : r.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return item ? r.GetRepeatedUInt64(message, &field, index) : r.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return item ? r.GetRepeatedBool(message, &field, index) : r.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumText(item ? *r.GetRepeatedEnum(message, &field, index)
                           : *r.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToTree(item ? r.GetRepeatedMessage(message, &field, index)
                         : r.GetMessage(message, &field));
    default: return nullptr;
  }
}

Json MapTree(const Proto& message, const FieldDescriptor& field) {
  const auto& r = *message.GetReflection();
  std::map<std::string, Json> sorted;
  for (int i = 0; i < r.FieldSize(message, &field); ++i) {
    const Proto& entry = r.GetRepeatedMessage(message, &field, i);
    const auto& type = *entry.GetDescriptor();
    const Json key = ItemTree(entry, *type.map_key(), -1);
    sorted[key.is_string() ? key.get<std::string>() : JsonText(key)] =
        ItemTree(entry, *type.map_value(), -1);
  }
  Json tree = Json::object();
  for (auto& [key, value] : sorted) Append(tree, key, std::move(value));
  return tree;
}

Json ListTree(const Proto& message, const FieldDescriptor& field) {
  Json list = Json::array();
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) list.push_back(ItemTree(message, field, i));
  return list;
}

Json FieldsTree(const Proto& message) {
  Json tree = Json::object();
  const auto& reflection = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (RuleOf(field).internal()) continue;
    const bool set = field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                                         : reflection.HasField(message, &field);
    if (set) tree[field.json_name()] = FieldTree(message, field);
  }
  return tree;
}

}  // namespace

Json NumberTree(double value) {
  if (!std::isfinite(value)) return FormatNumber(value);
  const bool whole = value == std::floor(value) && std::abs(value) <= 0x1p53;
  if (whole && !(value == 0 && std::signbit(value))) return static_cast<int64_t>(value);
  return value;
}

Json FieldTree(const Proto& message, const FieldDescriptor& field) {
  if (field.is_map()) return MapTree(message, field);
  return field.is_repeated() ? ListTree(message, field) : ItemTree(message, field, -1);
}

Json ToTree(const Proto& message) {
  const auto* type = message.GetDescriptor();
  if (type == Struct::descriptor()) return StructTree(static_cast<const Struct&>(message));
  if (type == Value::descriptor()) return FreeTree(static_cast<const Value&>(message));
  if (type == google::protobuf::Timestamp::descriptor()) {
    return FormatTime(static_cast<const google::protobuf::Timestamp&>(message));
  }
  if (type == v1::Assignment::descriptor()) {
    return AssignmentTree(static_cast<const v1::Assignment&>(message));
  }
  return FieldsTree(message);
}

std::string ToYaml(const Proto& message) { return YamlOf(ToTree(message)); }

std::string ToJson(const Proto& message, int indent) { return JsonText(ToTree(message), indent); }

// Whether a file still describes the experiment that the store has.

namespace {

constexpr size_t kMostOfValue = 120;  // of a value: a parameter with a few of its own

struct Difference {
  std::string path;
  std::string before;
  std::string after;
};

std::string Shown(const Json* value) {
  if (value == nullptr) return "nothing";
  const std::string text = JsonText(*value);
  return text.size() <= kMostOfValue ? text : text.substr(0, kMostOfValue - 3) + "...";
}

std::optional<Difference> Compare(const Json& a, const Json& b, const std::string& path);

std::optional<Difference> CompareObjects(const Json& a, const Json& b, const std::string& path) {
  std::map<std::string, const Json*> others;
  for (const auto& [key, value] : b.items()) others.emplace(key, &value);
  for (const auto& [key, value] : a.items()) {
    const std::string child = ChildPath(path, key);
    const auto other = others.find(key);
    if (other == others.end()) return Difference{child, Shown(&value), Shown(nullptr)};
    if (auto difference = Compare(value, *other->second, child)) return difference;
    others.erase(other);
  }
  for (const auto& [key, value] : others) {
    return Difference{ChildPath(path, key), Shown(nullptr), Shown(value)};
  }
  return std::nullopt;
}

// The first difference in the order of the fields.
std::optional<Difference> Compare(const Json& a, const Json& b, const std::string& path) {
  if (a == b) return std::nullopt;
  if (a.is_object() && b.is_object()) return CompareObjects(a, b, path);
  if (a.is_array() && b.is_array()) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const std::string child = ItemPath(path, static_cast<int>(i));
      if (i >= a.size()) return Difference{child, Shown(nullptr), Shown(&b[i])};
      if (i >= b.size()) return Difference{child, Shown(&a[i]), Shown(nullptr)};
      if (auto difference = Compare(a[i], b[i], child)) return difference;
    }
  }
  return Difference{path, Shown(&a), Shown(&b)};
}

// The specification without what may change while the experiment runs, of which the ranges are
// those of the first `compared` parameters: any further one is shown as it is.
Json Fixed(const v1::Experiment& experiment, int compared) {
  v1::Experiment copy;
  *copy.mutable_spec() = experiment.spec();
  SetDefaults(copy);
  copy.mutable_spec()->clear_parallel_trial_count();
  copy.mutable_spec()->clear_max_trial_count();
  copy.mutable_spec()->clear_max_failed_trial_count();
  copy.mutable_spec()->mutable_objective()->clear_goal();
  for (int i = 0; i < compared; ++i) {
    v1::FeasibleSpace& range =
        *copy.mutable_spec()->mutable_parameters(i)->mutable_feasible_space();
    range.clear_min();
    range.clear_max();
    range.clear_list();
    range.clear_numbers();
    if (range.distribution() == v1::UNIFORM) range.clear_distribution();  // it is the default
  }
  return ToTree(copy.spec());
}

}  // namespace

Status CheckSameExperiment(const v1::Experiment& existing, const v1::Experiment& wanted) {
  const int both = std::min(existing.spec().parameters_size(), wanted.spec().parameters_size());
  const auto difference = Compare(Fixed(existing, both), Fixed(wanted, both), "spec");
  if (!difference) return absl::OkStatus();
  const ExperimentKey key{existing.metadata().namespace_(), existing.metadata().name()};
  return absl::AlreadyExistsError(
      "experiment " + ToString(key) + " exists and is another search: " + difference->path +
      " is " + difference->before + " there and " + difference->after +
      " here; give this one another metadata.name, or delete the other first");
}

}  // namespace shirabe::experiment
