// Reading objects of the API server without trusting their form: a field that is not there, or is
// of another type, is empty. Pure functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

namespace shirabe::kube {

using Json = nlohmann::json;
using JsonPath = std::initializer_list<const char*>;

// The value at metadata.name and the like; null if there is none.
const Json* FindAt(const Json& object, JsonPath path);
std::string TextAt(const Json& object, JsonPath path);
int64_t IntegerAt(const Json& object, JsonPath path);

inline std::string NameOf(const Json& object) { return TextAt(object, {"metadata", "name"}); }
inline std::string NamespaceOf(const Json& object) {
  return TextAt(object, {"metadata", "namespace"});
}
inline std::string UidOf(const Json& object) { return TextAt(object, {"metadata", "uid"}); }
inline std::string VersionOf(const Json& object) {
  return TextAt(object, {"metadata", "resourceVersion"});
}

// As the API server takes it: what is no UTF-8 becomes a replacement character.
std::string Dump(const Json& value);

}  // namespace shirabe::kube
