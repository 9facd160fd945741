#include "trial/kubernetes/removal_records.h"

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <system_error>

#include "base/file_io.h"
#include "base/names.h"
#include "base/text/json_fields.h"
#include "base/text/json_text.h"

namespace shirabe::trial {
namespace {

std::string ObjectFile(const std::string& dir) { return dir + "/object.json"; }
std::string StateFile(const std::string& dir) { return dir + "/state.pb"; }

namespace fs = std::filesystem;

constexpr char kEnding[] = ".json";
constexpr int64_t kMaxRemovalBytes = 1 << 16;

std::string RemovalsDir(const FileLayout& layout) { return layout.home() + "/removals"; }

// Of a key that was checked.
std::string RemovalFile(const FileLayout& layout, const ExperimentKey& experiment) {
  return RemovalsDir(layout) + "/" + experiment.ns + "/" + experiment.name + kEnding;
}

// What lies in a folder, one after the other, until `visit` says that it is enough. Nothing if it
// is a link, or not there.
void Visit(const fs::path& dir, const std::function<bool(const fs::path&)>& visit) {
  std::error_code error;
  if (fs::is_symlink(dir, error)) return;
  for (fs::directory_iterator at(dir, error), end; !error && at != end; at.increment(error)) {
    if (!visit(at->path())) return;
  }
}

ObjectKind KindOf(const kube::Resource& resource) {
  if (resource.kind == Jobs().kind || resource.kind == Pods().kind) return {};
  const std::string group = resource.group.empty() ? "" : resource.group + "/";
  return {.api_version = group + resource.version, .kind = resource.kind};
}

}  // namespace

Status SaveObjectRecord(const std::string& dir, const kube::Ref& ref) {
  const Json json = {{"group", ref.resource.group},     {"version", ref.resource.version},
                     {"plural", ref.resource.plural},   {"kind", ref.resource.kind},
                     {"namespace", ref.namespace_name}, {"name", ref.name}};
  return WriteFileAtomic(ObjectFile(dir), JsonText(json) + "\n");
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

Status SaveRemoval(const FileLayout& layout, const ExperimentKey& experiment,
                   const ObjectKind& kind) {
  RETURN_IF_ERROR(ValidateKey(experiment));
  RETURN_IF_ERROR(MakeDirs(RemovalsDir(layout) + "/" + experiment.ns));
  const Json json = {{"apiVersion", kind.api_version}, {"kind", kind.kind}};
  return WriteFileAtomic(RemovalFile(layout, experiment), JsonText(json) + "\n", /*durable=*/true);
}

void ForgetRemoval(const FileLayout& layout, const ExperimentKey& experiment) {
  if (!ValidateKey(experiment).ok()) return;
  unlink(RemovalFile(layout, experiment).c_str());
  rmdir((RemovalsDir(layout) + "/" + experiment.ns).c_str());  // if it was the namespace's last
}

std::map<ExperimentKey, ObjectKind> FindRemovals(const FileLayout& layout) {
  std::map<ExperimentKey, ObjectKind> found;
  const auto take = [&](const fs::path& file) {
    const ExperimentKey key{file.parent_path().filename(), file.stem()};
    if (file.extension() != kEnding || !ValidateKey(key).ok()) return true;  // half written
    const auto text = ReadFile(file, kMaxRemovalBytes);
    const Json json = text.ok() ? ReadJsonOrDiscarded(*text) : Json();
    found[key] = {.api_version = Text(json, {"apiVersion"}), .kind = Text(json, {"kind"})};
    return true;
  };
  Visit(RemovalsDir(layout), [&](const fs::path& ns) {
    Visit(ns, take);
    return true;
  });
  return found;
}

ObjectKind KindOfRecords(const FileLayout& layout, const ExperimentKey& experiment) {
  if (!ValidateKey(experiment).ok()) return {};
  StatusOr<kube::Ref> ref = absl::NotFoundError("no attempt");
  const auto look = [&](const fs::path& attempt) {
    ref = LoadObjectRecord(attempt);
    return !ref.ok();
  };
  Visit(layout.ExperimentDir(experiment), [&](const fs::path& trial) {
    Visit(trial, look);
    return !ref.ok();
  });
  return ref.ok() ? KindOf(ref->resource) : ObjectKind();
}

}  // namespace shirabe::trial
