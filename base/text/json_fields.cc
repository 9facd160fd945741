#include "base/text/json_fields.h"

#include <cmath>

namespace shirabe {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// Beyond this a double is no exact whole number.
constexpr double kMaxExactDouble = 9007199254740992.0;  // 2^53

const Json& Null() {
  static const Json null;
  return null;
}

// Protobuf reads no message that is nested more than a hundred deep.
Json FromValue(const Value& value) {
  switch (value.kind_case()) {
    case Value::kBoolValue: return value.bool_value();
    case Value::kStringValue: return value.string_value();
    case Value::kStructValue: return FromStruct(value.struct_value());
    case Value::kListValue: {
      Json list = Json::array();
      for (const Value& item : value.list_value().values()) list.push_back(FromValue(item));
      return list;
    }
    case Value::kNumberValue: {
      const double number = value.number_value();
      const bool whole = std::abs(number) <= kMaxExactDouble && number == std::floor(number);
      return whole ? Json(static_cast<int64_t>(number)) : Json(number);
    }
    default: return nullptr;
  }
}

}  // namespace

const Json* FindAt(const Json& object, JsonPath path) {
  const Json* at = &object;
  for (const char* key : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

const Json& At(const Json& object, JsonPath path) {
  const Json* found = FindAt(object, path);
  return found == nullptr ? Null() : *found;
}

std::string Text(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>() : std::string();
}

std::string Text(const Json& object, JsonPath path) { return Text(At(object, path)); }

int64_t Number(const Json& value) { return value.is_number_integer() ? value.get<int64_t>() : 0; }

int64_t Number(const Json& object, JsonPath path) { return Number(At(object, path)); }

bool IsTrue(const Json& value) { return value.is_boolean() && value.get<bool>(); }

const Json& Items(const Json& value) {
  static const Json empty = Json::array();
  return value.is_array() ? value : empty;
}

const Json& ItemBy(const Json& list, const char* key, const std::string& text) {
  for (const Json& item : Items(list)) {
    const Json& field = At(item, key);
    if (field.is_string() && field.get_ref<const std::string&>() == text) return item;
  }
  return Null();
}

std::optional<absl::Time> TimeOf(const Json& value) {
  absl::Time time;
  std::string error;
  if (!value.is_string() || !absl::ParseTime(absl::RFC3339_full, Text(value), &time, &error)) {
    return std::nullopt;
  }
  // What a runtime never set reads as the epoch.
  if (time <= absl::UnixEpoch()) return std::nullopt;
  return time;
}

Json& ObjectIn(Json& parent, const char* key) {
  Json& field = parent[key];
  if (!field.is_object()) field = Json::object();
  return field;
}

Json& ListIn(Json& parent, const char* key) {
  Json& field = parent[key];
  if (!field.is_array()) field = Json::array();
  return field;
}

Json FromStruct(const Struct& object) {
  Json json = Json::object();
  for (const auto& [key, value] : object.fields()) json[key] = FromValue(value);
  return json;
}

}  // namespace shirabe
