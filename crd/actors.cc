#include "crd/actors.h"

#include <string>
#include <string_view>

#include "crd/objects.h"
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

// A copy from a watch has no managedFields (kube/cache.h); the API server has.
Json ManagersOf(kube::Client& client, const Json& object) {
  const auto whole = client.Get({Experiments(), NamespaceOf(object), NameOf(object)});
  const Json* managers = FindAt(whole.ok() && UidOf(*whole) == UidOf(object) ? *whole : object,
                                {"metadata", "managedFields"});
  return managers != nullptr && managers->is_array() ? *managers : Json::array();
}

// The manager that wrote the specification first, or last: a program, not a person. Their times
// have whole seconds, in UTC.
std::string ProgramOf(const Json& managers, bool first) {
  std::string program, time;
  for (const Json& manager : managers) {
    const Json* spec = FindAt(manager, {"fieldsV1", "f:spec"});
    if (spec == nullptr || !TextAt(manager, {"subresource"}).empty()) continue;
    const std::string at = TextAt(manager, {"time"});
    if (!program.empty() && (first ? at >= time : at < time)) continue;
    program = TextAt(manager, {"manager"});
    time = at;
  }
  return program;
}

}  // namespace

v1::Actor ActorOf(kube::Client& client, const Json& object, const char* annotation) {
  const std::string user = TextAt(object, {"metadata", "annotations", annotation});
  if (!user.empty() && PolicyIsThere(client)) return Named(user);
  const std::string program =
      ProgramOf(ManagersOf(client, object), std::string_view(annotation) == kCreatedBy);
  return Named(program.empty() ? "an unnamed user" : "an unnamed user of " + program);
}

v1::Actor UnnamedDeleter() { return Named("the unnamed user who deleted its object"); }

}  // namespace shirabe::crd
