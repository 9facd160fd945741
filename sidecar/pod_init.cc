#include "sidecar/pod_init.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "artifacts/package/code_cache.h"
#include "artifacts/retries.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/task_pool.h"
#include "sidecar/trainer_endpoint.h"
#include "trial/checkpoint/checkpoint_folder.h"
#include "trial/checkpoint/checkpoint_resumer.h"
#include "trial/checkpoint/checkpoint_store.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/file_layout.h"
#include "trial/local/attempt_endpoints.h"
#include "trial/local/spawn_supervisor.h"

namespace shirabe::sidecar {
namespace {

Status Failed(const std::string& what, int error) {
  if (error != ELOOP && error != ENOTDIR) return ErrnoStatus(what, error);
  return absl::InvalidArgumentError(what + ": a link or a file stands there, not a folder");
}

// Name by name from the volume's own folder, each open to all.
Status MakeBelow(int home, const std::string& path) {
  Fd parent(fcntl(home, F_DUPFD_CLOEXEC, 0));
  if (!parent.valid()) return ErrnoStatus("cannot open the volume", errno);
  for (const auto part : absl::StrSplit(path, '/')) {
    const std::string name(part);
    if (mkdirat(parent.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
      return Failed("cannot create folder " + path, errno);
    }
    Fd folder(openat(parent.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder.valid()) return Failed("cannot open " + name + " of folder " + path, errno);
    RETURN_IF_ERROR(MakeWorldWritable(folder.get(), path));
    parent = std::move(folder);
  }
  return absl::OkStatus();
}

}  // namespace

Status MakeWorldWritable(int folder, const std::string& shown) {
  struct stat info;
  if (fstat(folder, &info) != 0) return ErrnoStatus("cannot look at " + shown, errno);
  if ((info.st_mode & 0777) == 0777 || fchmod(folder, 0777) == 0) return absl::OkStatus();
  const int error = errno;
  if (faccessat(folder, ".", W_OK, 0) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot open folder " + shown + " to the program's user", error);
}

Status MakeHomeFolders(const Pod& pod) {
  const trial::FileLayout layout(pod.home());
  const trial::AttemptPaths own = layout.Paths(pod.key);
  std::vector<std::string> wanted = {own.checkpoint_dir, own.output_dir};
  // One that is gone is empty then, which is found where it is read.
  for (const v1::Checkpoint& checkpoint : pod.config.resume()) {
    RETURN_IF_ERROR(ValidateKey(trial::KeyOf(checkpoint)));
    wanted.push_back(layout.Paths(trial::KeyOf(checkpoint)).checkpoint_dir);
  }
  const Fd home(open(layout.home().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!home.valid()) return ErrnoStatus("cannot open " + layout.home(), errno);
  for (const std::string& path : wanted) {
    RETURN_IF_ERROR(MakeBelow(home.get(), path.substr(layout.home().size() + 1)));
  }
  return absl::OkStatus();
}

namespace {

// A volume that was just attached may not answer at once, and we would not be started again.
constexpr int kMaxTries = 30;
constexpr absl::Duration kRetryInterval = absl::Seconds(2);

Status OpenFolder(const std::string& dir) {
  const Fd fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot open folder " + dir, errno);
  return MakeWorldWritable(fd.get(), dir);
}

// Of a volume that is mounted in parts they are there: see pod_init.h.
Status MakeFolders(const Pod& pod, const trial::FileLayout& layout) {
  RETURN_IF_ERROR(MakeDirs(pod.paths.dir));
  RETURN_IF_ERROR(OpenFolder(pod.paths.dir));
  const std::string collected = pod.root + "/collected";  // kPodCollected, where it is mounted
  if (access(collected.c_str(), F_OK) == 0) RETURN_IF_ERROR(OpenFolder(collected));
  if (pod.config.home_in_parts()) return absl::OkStatus();
  RETURN_IF_ERROR(MakeDirs(layout.home()));
  RETURN_IF_ERROR(MakeHomeFolders(pod));
  return OpenFolder(layout.Paths(pod.key).dir);
}

// A new volume is root's.
Status ExplainOwner(const Status& made) {
  if (!absl::IsPermissionDenied(made)) return made;
  return absl::PermissionDeniedError(
      absl::StrCat(Message(made), ": user ", geteuid(),
                   " may not write to the volume; a securityContext.fsGroup ",
                   "in the trial's pod template gives it to that group"));
}

Status PlaceSupervisor(const Pod& pod) {
  const std::string dir = pod.root + "/bin";
  RETURN_IF_ERROR(MakeDirs(dir));
  const std::string path = dir + "/supervisor";
  RETURN_IF_ERROR(WriteFileAtomic(path, std::string(trial::SupervisorProgram())));
  if (chmod(path.c_str(), 0755) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot chmod " + path, errno);
}

// Tries until a candidate is in place, or all are found damaged.
class Resuming {
 public:
  Resuming(const Pod& pod, const trial::FileLayout* layout, PodStores::Table stores)
      : store_(layout),
        copier_({.layout = layout, .stores = std::move(stores)}),
        resumer_(
            {.layout = layout, .store = &store_, .copier = &copier_, .background = &task_pool_},
            [this](const AttemptKey&) {
              const MutexLock lock(mutex_);
              ++ready_;
              changed_.NotifyAll();
            }) {
    copier_.SetPolicy(pod.key.trial.experiment, pod.config.artifacts());
    request_.key = pod.key;
    request_.resume = {pod.config.resume().begin(), pod.config.resume().end()};
  }

  StatusOr<std::string> Run() {
    for (int tries = 1;; ++tries) {
      const int before = ready();
      auto path = resumer_.Prepare(request_);
      if (path.ok() || !absl::IsUnavailable(path.status())) return path;
      if (resumer_.Busy(request_.key.trial.experiment, request_.key.trial.number)) {
        Await(before);
        path = resumer_.Prepare(request_);
        if (path.ok()) return path;
      }
      if (tries == kMaxTries) return path;
      Log(LogLevel::kWarning, "cannot read the checkpoint yet",
          {{"error", Message(path.status())}});
      Pause(kRetryInterval);
    }
  }

 private:
  int ready() {
    const MutexLock lock(mutex_);
    return ready_;
  }
  void Await(int before) {
    MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ready_ > before; });
  }

  trial::AttemptRequest request_;
  trial::CheckpointStore store_;
  trial::CheckpointCopier copier_;
  Mutex mutex_;
  CondVar changed_;
  int ready_ ABSL_GUARDED_BY(mutex_) = 0;
  trial::Resumer resumer_;
  TaskPool task_pool_{1};  // last: its thread uses all of the above
};

// Whether the package is none that a program could start from, at any time and on any machine: its
// store has none of it, or something else, or it cannot be unpacked. `stored` is what its store
// said. All else is of the way to it, or of this machine, and passes.
bool IsInVain(const Status& stored, const Status& filled) {
  if (!stored.ok()) return absl::IsNotFound(stored) || absl::IsDataLoss(stored);
  return absl::IsDataLoss(filled) || absl::IsInvalidArgument(filled);
}

// One try. kUnavailable for whatever passes.
Status TryToFetchCode(artifacts::CodeCache& cache, const Pod& pod, const InitOptions& options) {
  Status stored, sunk;
  const auto source = [&](const artifacts::PieceSink& sink) {
    const auto tell = [&](std::string_view piece) { return sunk = sink(piece); };
    const Status got = options.stores.code->Get(CodeKey(pod.config), {}, tell, {});
    if (sunk.ok()) stored = got;
    return got;
  };
  const Status filled = cache.Fill(pod.config.code(), source, {});
  if (filled.ok() || IsInVain(stored, filled)) return filled;
  return absl::UnavailableError(Message(filled));
}

// The code package, checked before anything of it is unpacked, where the program finds it.
Status FetchCode(const Pod& pod, const InitOptions& options) {
  const std::string& digest = pod.config.code();
  if (digest.empty()) return absl::OkStatus();
  if (options.stores.code == nullptr) return absl::InternalError("no store is open for its code");
  const std::string shown = "code package sha256:" + digest.substr(0, 12) + "…";
  artifacts::CodeCache cache(pod.root + "/code");
  const Status fetched = artifacts::WithRetries(
      options.fetch, {}, [&] { return TryToFetchCode(cache, pod, options); });
  if (fetched.ok()) return absl::OkStatus();
  if (absl::IsUnavailable(fetched)) {
    return absl::UnavailableError(absl::StrCat(shown, ": ", Message(fetched)));
  }
  const std::string why = absl::IsNotFound(fetched) ? "it is not in its store" : Message(fetched);
  return absl::DataLossError(
      absl::StrCat(shown, ": ", why, ": put it there again with shirabe upload"));
}

// One on which no program listens now; with the host's network others are there.
uint16_t FreePort() {
  const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!fd.valid() || bind(fd.get(), generic, size) != 0 ||
      getsockname(fd.get(), generic, &size) != 0) {
    return kTrainerPort;
  }
  return ntohs(address.sin_port);
}

// Where the program may tell its status (trainer_endpoint.h), and what it needs for that.
StatusOr<std::string> PrepareTrainerEndpoint(const Pod& pod) {
  const std::string token_file = pod.run(trial::kTrainerTokenFile);
  RETURN_IF_ERROR(WriteFileAtomic(token_file, trial::MakeTrainerToken()));
  const std::string url = absl::StrCat("http://127.0.0.1:", FreePort(), "/trainer-status");
  RETURN_IF_ERROR(WriteFileAtomic(pod.run(trial::kTrainerUrlFile), url));
  std::string lines;
  for (const auto& [name, value] : trial::TrainerVariables(url, token_file)) {
    absl::StrAppend(&lines, name, "=", value, "\n");
  }
  if (pod.config.ca().empty()) return lines;
  // Programs load it before they look whether the address needs it.
  const std::string ca_file = pod.run("trainer-ca.pem");
  RETURN_IF_ERROR(WriteFileAtomic(ca_file, pod.config.ca()));
  return absl::StrCat(lines, "KUBEFLOW_TRAINER_SERVER_CA_CERT=", ca_file, "\n");
}

// Before what the image or the template has there (trial/supervisor/system.h).
std::string CodeLines(const Pod& pod) {
  const std::string& digest = pod.config.code();
  return digest.empty() ? "" : absl::StrCat("PYTHONPATH+=", pod.root, "/code/", digest, "\n");
}

// What came of the candidates, for the sidecar, and for the next run of this.
Status WriteBegin(const Pod& pod, const trial::FileLayout& layout) {
  const trial::Resume resume = trial::ReadResume(layout.Paths(pod.key).dir);
  v1::PodState begin;
  if (resume.from) *begin.mutable_resumed() = *resume.from;
  for (const v1::Checkpoint& checkpoint : resume.damaged) *begin.add_damaged() = checkpoint;
  return WriteMessage(pod.run("begin"), begin);
}

}  // namespace

Status Init(const Pod& pod, const InitOptions& options) {
  const trial::FileLayout layout(pod.home());
  RETURN_IF_ERROR(ExplainOwner(MakeFolders(pod, layout)));
  // The program has started, or may have: what it saved since stands where a copy would go.
  if (access(pod.run("begin").c_str(), F_OK) == 0) return absl::OkStatus();
  RETURN_IF_ERROR(PlaceSupervisor(pod));
  RETURN_IF_ERROR(WriteFileAtomic(pod.paths.params_file, pod.config.parameters_json()));
  RETURN_IF_ERROR(FetchCode(pod, options));
  ASSIGN_OR_RETURN(const std::string resume_from,
                   Resuming(pod, &layout, options.stores.copies).Run());
  if (pod.katib_folder) {
    RETURN_IF_ERROR(trial::FillKatibFolder(layout, pod.key, /*open_to_all=*/true));
  }
  ASSIGN_OR_RETURN(const std::string trainer_lines, PrepareTrainerEndpoint(pod));
  RETURN_IF_ERROR(WriteFileAtomic(
      pod.run("env"),
      absl::StrCat("SHIRABE_RESUME_FROM=", resume_from, "\n", trainer_lines, CodeLines(pod))));
  return WriteBegin(pod, layout);
}

}  // namespace shirabe::sidecar
