// Reading and changing objects of the Kubernetes API that may have any shape: what is not there, or
// is of another kind than expected, reads as null, "" or an empty list, and never ends the program.
// Used by the parts that make and read pods. Pure functions.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "google/protobuf/struct.pb.h"
#include "kube/object.h"

namespace shirabe::trial {

using Json = nlohmann::json;

// The field of that name, below one another; null where one is missing. The result lives as long as
// the object.
const Json& At(const Json& object, std::initializer_list<const char*> path);
inline const Json& At(const Json& object, const char* key) { return At(object, {key}); }

// "" for what is no text; 0 for what is no whole number; false for what is not true.
std::string Text(const Json& value);
std::string Text(const Json& object, std::initializer_list<const char*> path);
int64_t Number(const Json& value);
bool IsTrue(const Json& value);

// The list itself, or an empty one.
const Json& Items(const Json& value);
// The item of a list of objects whose field `key` is this text; null if there is none.
const Json& ItemBy(const Json& list, const char* key, const std::string& text);
inline const Json& Named(const Json& list, const std::string& name) {
  return ItemBy(list, "name", name);
}

// The status of that container, whichever list it is in (a native sidecar's is with the init
// containers').
const Json& ContainerStatus(const Json& pod, const std::string& container);

// The condition of that type; null if there is none, whatever its status.
const Json& Condition(const Json& object, const std::string& type);

// As the API server writes it: "2026-11-21T21:16:15Z".
std::optional<absl::Time> TimeOf(const Json& value);

// The field, made an object or a list if it is none. `parent` must be an object.
Json& ObjectIn(Json& parent, const char* key);
Json& ListIn(Json& parent, const char* key);

// A rendered trialSpec as JSON: whole numbers become integers, as the API server wants them.
Json FromStruct(const google::protobuf::Struct& object);

}  // namespace shirabe::trial
