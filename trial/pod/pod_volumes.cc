#include "trial/pod/pod_volumes.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/shirabe/v1/collector_traits.h"
#include "trial/checkpoint/checkpoint_folder.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/file_layout.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {
namespace {

// One variable may hold 128 KiB, and a candidate takes a few hundred bytes; each attempt that they
// are of is a mount.
constexpr size_t kMaxResumeCandidates = 100;
constexpr size_t kMaxMounts = 32;
constexpr int64_t kTokenSeconds = 3600;  // the kubelet renews it

constexpr char kSuggestionClaimSize[] = "1Gi";  // Katib's

constexpr char kCollectorField[] = "spec.metricsCollectorSpec.source.fileSystemPath.path";

bool Holds(const std::string& folder, const std::string& path) {
  return path == folder || folder == "/" || absl::StartsWith(path, folder + "/");
}

// Whether no program would start, or no container at all, with an empty volume in place of this
// folder: it is, or has in it, one that images have their programs in, or one of the kernel's or of
// the kubelet's.
bool IsOfTheSystem(const std::string& folder) {
  constexpr std::array kNeeded = {"/bin",  "/dev",     "/etc",     "/lib",      "/lib64",
                                  "/sbin", "/usr/bin", "/usr/lib", "/usr/local"};
  constexpr std::array kForeign = {"/proc", "/sys", "/run/secrets", "/var/run/secrets"};
  const auto holds = [&](const char* one) { return Holds(folder, one); };
  return std::any_of(kNeeded.begin(), kNeeded.end(), holds) ||
         std::any_of(kForeign.begin(), kForeign.end(),
                     [&](const char* one) { return holds(one) || Holds(one, folder); });
}

std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  while (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

Json ClaimSpec(const std::string& size, const std::string& storage_class) {
  Json spec = {{"accessModes", Json::array({"ReadWriteOnce"})},
               {"resources", {{"requests", {{"storage", size}}}}}};
  if (!storage_class.empty()) spec["storageClassName"] = storage_class;
  return spec;
}

Json EmptyVolume(const char* name) { return {{"name", name}, {"emptyDir", Json::object()}}; }

Json Mount(const char* name, const std::string& path) {
  return {{"name", name}, {"mountPath", path}};
}

// ---- checkpoints --------------------------------------------------------------------------------

// Null if checkpoints lie in the pod's own space.
Json HomeVolume(const AttemptRequest& request) {
  const v1::CheckpointVolume& volume = request.cluster.volume;
  if (volume.size().empty() || !SharedVolume(volume).is_null()) return SharedVolume(volume);
  return {{"name", kHomeVolume},
          {"persistentVolumeClaim", {{"claimName", ClaimName(request.key.trial)}}}};
}

// A folder of the volume, where it would lie if the whole volume were mounted.
Json Part(const std::string& path, bool read_only) {
  Json mount = Mount(kHomeVolume, path);
  mount["subPath"] = path.substr(sizeof kPodHome);
  if (read_only) mount["readOnly"] = true;
  return mount;
}

void MountHome(const AttemptRequest& request, PodVolumes& made) {
  if (SharedVolume(request.cluster.volume).is_null()) {
    made.shared.push_back(Mount(kHomeVolume, kPodHome));
    return;
  }
  const FileLayout layout(kPodHome);
  const AttemptPaths own = layout.Paths(request.key);
  for (const std::string& path : {own.dir, own.output_dir}) {
    made.shared.push_back(Part(path, /*read_only=*/false));
  }
  std::set<std::string> mounted;
  for (const v1::Checkpoint& checkpoint : ResumeCandidates(request)) {
    const std::string path = layout.Paths(KeyOf(checkpoint)).checkpoint_dir;
    if (mounted.insert(path).second) made.init.push_back(Part(path, /*read_only=*/true));
  }
  made.folders.push_back(Mount(kHomeVolume, kPodHome));
}

// The folder of Katib's checkpoints at the path that the program knows, unless the user has mounted
// something there.
void MountKatibFolder(const AttemptRequest& request, const Json& container, PodVolumes& made) {
  const std::string path = KatibPath(request.environment);
  if (path.empty()) return;
  for (const Json& mount : Items(At(container, "volumeMounts"))) {
    if (Normal(Text(mount, {"mountPath"})) == Normal(path)) return;
  }
  const std::string folder = KatibFolder(PodPaths(request.key));
  const bool own_volume = made.volumes[1]["name"] == kHomeVolume;
  Json mount = Mount(own_volume ? kHomeVolume : kOurVolume, path);
  mount["subPath"] = folder.substr(own_volume ? sizeof kPodHome : sizeof kPodRoot);
  made.program.push_back(std::move(mount));
}

// Filled by our init container; nothing of the trial's writes there.
void MountCode(const AttemptRequest& request, PodVolumes& made) {
  if (request.cluster.code.package().empty()) return;
  made.volumes.push_back(EmptyVolume(kCodeVolume));
  made.init.push_back(Mount(kCodeVolume, kPodCode));
  Json mount = Mount(kCodeVolume, kPodCode);
  mount["readOnly"] = true;
  made.code.push_back(std::move(mount));
}

// ---- who the pod is -----------------------------------------------------------------------------

// Made by the kubelet for this pod alone: nothing of it stands in the pod's specification.
Json TokenVolume() {
  const Json token = {
      {"audience", kPodAudience}, {"expirationSeconds", kTokenSeconds}, {"path", "token"}};
  return {{"name", kTokenVolume},
          {"projected", {{"sources", Json::array({{{"serviceAccountToken", token}}})}}}};
}

Json TokenMount() {
  Json mount = Mount(kTokenVolume, kPodTokenDir);
  mount["readOnly"] = true;
  return mount;
}

// ---- the collector's file -----------------------------------------------------------------------

// The user's mount that the file lies on, the innermost; null if there is none.
const Json& CoveringMount(const Json& container, const std::string& path) {
  static const Json none;
  const Json* best = &none;
  size_t depth = 0;
  for (const Json& mount : Items(At(container, "volumeMounts"))) {
    const std::string at = Normal(Text(mount, {"mountPath"}));
    if (at.empty() || at.size() < depth || !Holds(at, path)) continue;
    best = &mount;
    depth = at.size();
  }
  return *best;
}

// The folder that the program and the sidecar must share.
std::string FolderOf(const v1::MetricsCollectorSpec& collector, const std::string& path) {
  const bool folder = collector.source().file_system_path().kind() == v1::DIRECTORY;
  return folder ? path : std::filesystem::path(path).parent_path().string();
}

Status ShareUserMount(const Json& mount, PodVolumes& volumes) {
  if (At(mount, "subPathExpr").is_string()) {
    return InvalidField(
        kCollectorField,
        absl::StrCat("lies on a volume that is mounted at ", Text(mount, {"mountPath"}),
                     " with subPathExpr, which the sidecar cannot "
                     "mount as well: use subPath, or another folder"));
  }
  Json shared = mount;
  shared["readOnly"] = true;
  shared.erase("mountPropagation");
  volumes.collector.push_back(std::move(shared));
  return absl::OkStatus();
}

Status AddCollector(const AttemptRequest& request, const Json& container, const std::string& path,
                    PodVolumes& volumes) {
  if (path.empty() || Holds(kPodRoot, path)) return absl::OkStatus();
  if (Holds(kPodTokenDir, path) || Holds(path, kPodTokenDir)) {
    return InvalidField(
        kCollectorField,
        absl::StrCat("\"", path, "\" is a path of the sidecar's own: ",
                     "write to a folder of its own, such as ", "/var/log/katib/metrics.log"));
  }
  const Json& mount = CoveringMount(container, path);
  if (!mount.is_null()) return ShareUserMount(mount, volumes);
  const std::string folder = FolderOf(request.cluster.collector, path);
  const std::string program = Normal(Text(container, {"workingDir"}));
  if (IsOfTheSystem(folder) || (!program.empty() && Holds(folder, program))) {
    return InvalidField(
        kCollectorField,
        absl::StrCat("is in ", folder, ", and sharing that folder with the sidecar ",
                     "would hide what the image has there: write to a folder of its ",
                     "own, such as /var/log/katib/metrics.log"));
  }
  volumes.volumes.push_back(EmptyVolume(kMetricsVolume));
  volumes.program.push_back(Mount(kMetricsVolume, folder));
  Json read_only = Mount(kMetricsVolume, folder);
  read_only["readOnly"] = true;
  volumes.collector.push_back(std::move(read_only));
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::string> CollectorPath(const AttemptRequest& request, const Json& container) {
  const v1::MetricsCollectorSpec& collector = request.cluster.collector;
  const v1::CollectorTraits& traits = v1::TraitsOf(collector);
  const bool by_container = traits.container() && collector.source().has_file_system_path();
  if (!v1::ReadsPath(traits) && !by_container) return "";
  const AttemptPaths paths = PodPaths(request.key);
  const std::string path = absl::StrReplaceAll(collector.source().file_system_path().path(),
                                               {{"$(SHIRABE_OUTPUT_DIR)", paths.output_dir},
                                                {"$(SHIRABE_CHECKPOINT_DIR)", paths.checkpoint_dir},
                                                {"$(SHIRABE_METRICS_FILE)", paths.metrics_file}});
  const std::string base = Text(container, {"workingDir"});
  if (!absl::StartsWith(path, "/") && !absl::StartsWith(base, "/")) {
    return InvalidField(
        kCollectorField,
        absl::StrCat("\"", path, "\" is relative, and where the image's programs start ",
                     "is known only with an absolute workingDir of the container: give ",
                     "that, or an absolute path"));
  }
  return Normal((std::filesystem::path(base) / path).string());
}

StatusOr<PodVolumes> MakeVolumes(const AttemptRequest& request, const Json& container,
                                 const std::string& path) {
  PodVolumes made;
  made.volumes.push_back(EmptyVolume(kOurVolume));
  made.shared.push_back(Mount(kOurVolume, kPodRoot));
  Json home = HomeVolume(request);
  if (!home.is_null()) {
    made.volumes.push_back(std::move(home));
    MountHome(request, made);
  }
  made.volumes.push_back(TokenVolume());
  made.token.push_back(TokenMount());
  MountKatibFolder(request, container, made);
  MountCode(request, made);
  RETURN_IF_ERROR(AddCollector(request, container, path, made));
  return made;
}

void UseClaims(const std::string& storage_class, const std::string& size, PodVolumes& made) {
  const Json claim = {{"spec", ClaimSpec(size, storage_class)}};
  for (Json& volume : made.volumes) {
    if (volume.erase("emptyDir") == 0) continue;
    volume["ephemeral"] = {{"volumeClaimTemplate", claim}};
    if (volume["name"] == kMetricsVolume) made.init.push_back(Mount(kMetricsVolume, kPodCollected));
  }
}

std::vector<v1::Checkpoint> ResumeCandidates(const AttemptRequest& request) {
  std::vector<v1::Checkpoint> told;
  std::set<AttemptKey> attempts;
  for (const v1::Checkpoint& checkpoint : request.resume) {
    const AttemptKey of = KeyOf(checkpoint);
    if (told.size() == kMaxResumeCandidates) break;
    if (!ValidateKey(of).ok() || of.trial.experiment != request.key.trial.experiment) continue;
    if (attempts.count(of) == 0 && attempts.size() == kMaxMounts) continue;
    attempts.insert(of);
    told.push_back(checkpoint);
  }
  return told;
}

Json SharedVolume(const v1::CheckpointVolume& volume) {
  Json json = {{"name", kHomeVolume}};
  if (!volume.claim().empty()) {
    json["persistentVolumeClaim"] = {{"claimName", volume.claim()}};
  } else if (!volume.host_path().empty()) {
    json["hostPath"] = {{"path", volume.host_path()}, {"type", "DirectoryOrCreate"}};
  } else {
    return nullptr;
  }
  return json;
}

std::string ClaimName(const TrialKey& trial) { return TrialName(trial); }

std::string SuggestionClaimName(const ExperimentKey& experiment) {
  return experiment.name + "-suggestion";
}

v1::CheckpointVolume VolumeFor(const ExperimentKey& experiment, v1::CheckpointVolume volume,
                               const std::map<std::string, std::string>& environment) {
  const bool shared = !volume.claim().empty() || !volume.host_path().empty();
  if (!shared && !KatibPath(environment).empty()) {
    volume.set_claim(SuggestionClaimName(experiment));
  }
  return volume;
}

std::optional<Json> MakeClaim(const AttemptRequest& request) {
  const v1::CheckpointVolume& volume = request.cluster.volume;
  const ExperimentKey& experiment = request.key.trial.experiment;
  const bool of_all = volume.claim() == SuggestionClaimName(experiment);
  if (!of_all && (volume.size().empty() || !SharedVolume(volume).is_null())) return std::nullopt;
  const std::string size = volume.size().empty() ? kSuggestionClaimSize : volume.size();
  Json labels = {{kExperimentLabel, experiment.name}, {kManagedByLabel, kManager}};
  if (!of_all) labels[kTrialLabel] = TrialName(request.key.trial);
  return Json{{"apiVersion", "v1"},
              {"kind", "PersistentVolumeClaim"},
              {"metadata",
               {{"name", of_all ? volume.claim() : ClaimName(request.key.trial)},
                {"namespace", experiment.ns},
                {"labels", std::move(labels)}}},
              {"spec", ClaimSpec(size, volume.storage_class_name())}};
}

}  // namespace shirabe::trial
