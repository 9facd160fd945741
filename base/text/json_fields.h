// Reading and changing JSON that may have any shape, as objects of the Kubernetes API do: what is
// not there, or is of another kind than expected, reads as null, "" or an empty list, and never
// ends the program. Pure functions.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"

namespace shirabe {

using Json = nlohmann::json;

using JsonPath = std::initializer_list<const char*>;

// The value at metadata.name and the like; null if there is none.
const Json* FindAt(const Json& object, JsonPath path);

// The field of that name, below one another; null where one is missing. The result lives as long as
// the object.
const Json& At(const Json& object, JsonPath path);
inline const Json& At(const Json& object, const char* key) { return At(object, {key}); }

// "" for what is no text; 0 for what is no whole number; false for what is not true.
std::string Text(const Json& value);
std::string Text(const Json& object, JsonPath path);
int64_t Number(const Json& value);
int64_t Number(const Json& object, JsonPath path);
bool IsTrue(const Json& value);

// The list itself, or an empty one.
const Json& Items(const Json& value);
// The item of a list of objects whose field `key` is this text; null if there is none.
const Json& ItemBy(const Json& list, const char* key, const std::string& text);
inline const Json& Named(const Json& list, const std::string& name) {
  return ItemBy(list, "name", name);
}

// As the API server writes it: "2026-11-21T21:16:15Z".
std::optional<absl::Time> TimeOf(const Json& value);

// The field, made an object or a list if it is none. `parent` must be an object.
Json& ObjectIn(Json& parent, const char* key);
Json& ListIn(Json& parent, const char* key);

// A rendered trialSpec as JSON: whole numbers become integers, as the API server wants them.
Json FromStruct(const google::protobuf::Struct& object);

}  // namespace shirabe
