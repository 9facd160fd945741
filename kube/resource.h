// What is asked for: a kind of objects, one object, a selection. Data, no behaviour.
#pragma once

#include <string>

namespace shirabe::kube {

// A kind of objects: {"batch", "v1", "jobs", "Job"}. The core group is "".
struct Resource {
  std::string group;
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;
  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
};

// One object.
struct Ref {
  Resource resource;
  std::string namespace_name;  // "" for what is not namespaced
  std::string name;
};

struct Query {
  Resource resource;
  std::string namespace_name;  // "" = all namespaces
  std::string label_selector;
  std::string field_selector;
};

}  // namespace shirabe::kube
