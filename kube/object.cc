#include "kube/object.h"

namespace shirabe::kube {

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

std::string TextAt(const Json& object, JsonPath path) {
  const Json* at = FindAt(object, path);
  return at != nullptr && at->is_string() ? at->get_ref<const std::string&>() : "";
}

int64_t IntegerAt(const Json& object, JsonPath path) {
  const Json* at = FindAt(object, path);
  return at != nullptr && at->is_number_integer() ? at->get<int64_t>() : 0;
}

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shirabe::kube
