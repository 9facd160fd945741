#include "kube/json_access.h"

#include "base/text/json_text.h"

namespace shirabe::kube {

std::string Dump(const Json& value) { return JsonText(value); }

const Json& ContainerStatus(const Json& pod, const std::string& container) {
  const Json& status = At(pod, "status");
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    const Json& found = Named(At(status, list), container);
    if (!found.is_null()) return found;
  }
  static const Json null;
  return null;
}

const Json& Condition(const Json& object, const std::string& type) {
  return ItemBy(At(object, {"status", "conditions"}), "type", type);
}

}  // namespace shirabe::kube
