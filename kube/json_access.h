// Reading objects of the API server without trusting their form: a field that is not there, or is
// of another type, is empty. Pure functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text/json_fields.h"
#include "base/text/json_text.h"

namespace shirabe::kube {

using Json = nlohmann::json;

inline std::string NameOf(const Json& object) { return Text(object, {"metadata", "name"}); }
inline std::string NamespaceOf(const Json& object) {
  return Text(object, {"metadata", "namespace"});
}
inline std::string UidOf(const Json& object) { return Text(object, {"metadata", "uid"}); }
inline std::string VersionOf(const Json& object) {
  return Text(object, {"metadata", "resourceVersion"});
}

// As the API server takes it: what is no UTF-8 becomes a replacement character.
inline std::string Dump(const Json& value) { return JsonText(value); }

// The status of that container of a pod, whichever list it is in (a native sidecar's is with the
// init containers').
inline const Json& ContainerStatus(const Json& pod, const std::string& container) {
  const Json& status = At(pod, "status");
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    const Json& found = Named(At(status, list), container);
    if (!found.is_null()) return found;
  }
  static const Json null;
  return null;
}

// The entry of status.conditions of that type; null if there is none, whatever its status.
inline const Json& Condition(const Json& object, const std::string& type) {
  return ItemBy(At(object, {"status", "conditions"}), "type", type);
}

// A line of a watch. kBookmark has an object with nothing but its resource version.
struct WatchEvent {
  enum class Type { kAdded, kModified, kDeleted, kBookmark } type = Type::kAdded;
  Json object;
};

}  // namespace shirabe::kube
