#include "trial/kubernetes_removals.h"

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <system_error>

#include "base/file.h"
#include "base/json_text.h"
#include "base/keys.h"
#include "trial/kubernetes_record.h"
#include "trial/pod_json.h"

namespace shirabe::trial {
namespace {

namespace fs = std::filesystem;

constexpr char kEnding[] = ".json";
constexpr int64_t kMostBytes = 1 << 16;

std::string RemovalsDir(const Layout& layout) { return layout.home() + "/removals"; }

// Of a key that was checked.
std::string RemovalFile(const Layout& layout, const ExperimentKey& experiment) {
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

Status SaveRemoval(const Layout& layout, const ExperimentKey& experiment, const ObjectKind& kind) {
  RETURN_IF_ERROR(ValidateKey(experiment));
  RETURN_IF_ERROR(MakeDirs(RemovalsDir(layout) + "/" + experiment.ns));
  const Json json = {{"apiVersion", kind.api_version}, {"kind", kind.kind}};
  return WriteFileAtomic(RemovalFile(layout, experiment), json.dump() + "\n", /*durable=*/true);
}

void ForgetRemoval(const Layout& layout, const ExperimentKey& experiment) {
  if (!ValidateKey(experiment).ok()) return;
  unlink(RemovalFile(layout, experiment).c_str());
  rmdir((RemovalsDir(layout) + "/" + experiment.ns).c_str());  // if it was the namespace's last
}

std::map<ExperimentKey, ObjectKind> FindRemovals(const Layout& layout) {
  std::map<ExperimentKey, ObjectKind> found;
  const auto take = [&](const fs::path& file) {
    const ExperimentKey key{file.parent_path().filename(), file.stem()};
    if (file.extension() != kEnding || !ValidateKey(key).ok()) return true;  // half written
    const auto text = ReadFile(file, kMostBytes);
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

ObjectKind KindOfRecords(const Layout& layout, const ExperimentKey& experiment) {
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
