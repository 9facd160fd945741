#include "crd/actors.h"

#include <string>

#include "kube/object.h"

namespace shirabe::crd {
namespace {

using kube::FindAt;
using kube::Json;
using kube::TextAt;

constexpr char kDoor[] = "kubernetes";
constexpr char kBinding[] = "shirabe-actors";

v1::Actor Named(const std::string& name) {
  v1::Actor actor;
  actor.set_name(name);
  actor.set_door(kDoor);
  return actor;
}

bool PolicyIsThere(kube::Client& client) {
  const kube::Resource bindings{"admissionregistration.k8s.io", "v1",
                                "validatingadmissionpolicybindings",
                                "ValidatingAdmissionPolicyBinding", /*namespaced=*/false};
  return client.Get({bindings, "", kBinding}).ok();
}

// Of the manager that wrote the specification last: a program, not a person.
std::string ProgramOf(const Json& object) {
  const Json* managers = FindAt(object, {"metadata", "managedFields"});
  std::string program;
  if (managers == nullptr || !managers->is_array()) return program;
  for (const Json& manager : *managers) {
    if (TextAt(manager, {"subresource"}).empty()) program = TextAt(manager, {"manager"});
  }
  return program;
}

}  // namespace

v1::Actor ActorOf(kube::Client& client, const Json& object, const char* annotation) {
  const std::string user = TextAt(object, {"metadata", "annotations", annotation});
  if (!user.empty() && PolicyIsThere(client)) return Named(user);
  const std::string program = ProgramOf(object);
  return Named(program.empty() ? "an unnamed user" : "an unnamed user of " + program);
}

v1::Actor UnnamedDeleter() { return Named("the unnamed user who deleted its object"); }

}  // namespace shirabe::crd
