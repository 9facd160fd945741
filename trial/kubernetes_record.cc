#include "trial/kubernetes_record.h"

#include "base/file.h"
#include "base/json_text.h"
#include "trial/pod_json.h"

namespace shirabe::trial {
namespace {

std::string ObjectFile(const std::string& dir) { return dir + "/object.json"; }
std::string StateFile(const std::string& dir) { return dir + "/state.pb"; }

}  // namespace

Status SaveObjectRecord(const std::string& dir, const kube::Ref& ref) {
  const Json json = {{"group", ref.resource.group},     {"version", ref.resource.version},
                     {"plural", ref.resource.plural},   {"kind", ref.resource.kind},
                     {"namespace", ref.namespace_name}, {"name", ref.name}};
  return WriteFileAtomic(ObjectFile(dir), json.dump() + "\n");
}

StatusOr<kube::Ref> LoadObjectRecord(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(ObjectFile(dir), 1 << 16));
  const Json json = ReadJsonOrDiscarded(text);
  kube::Ref ref;
  ref.resource.group = Text(json, {"group"});
  ref.resource.version = Text(json, {"version"});
  ref.resource.plural = Text(json, {"plural"});
  ref.resource.kind = Text(json, {"kind"});
  ref.namespace_name = Text(json, {"namespace"});
  ref.name = Text(json, {"name"});
  if (ref.resource.plural.empty() || ref.name.empty()) {
    return absl::DataLossError(ObjectFile(dir) + " cannot be understood");
  }
  return ref;
}

Status SaveStateRecord(const std::string& dir, const v1::PodState& state) {
  return WriteFileAtomic(StateFile(dir), state.SerializeAsString(), /*durable=*/state.complete());
}

StatusOr<v1::PodState> LoadStateRecord(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(StateFile(dir)));
  v1::PodState state;
  if (!state.ParseFromString(bytes)) {
    return absl::DataLossError(StateFile(dir) + " cannot be understood");
  }
  return state;
}

}  // namespace shirabe::trial
