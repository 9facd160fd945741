#include "trial/local/spawn_supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "base/sha256.h"
#include "trial/local/pidfd.h"

namespace shirabe::trial {

namespace {

constexpr int kReadyFd = 3;  // in the supervisor
constexpr int kStepsFd = 4;  // the same
constexpr int kFreeFd = 10;  // none of those of the supervisor
constexpr int kReadyTimeoutMs = 30'000;
constexpr int kEndedSilently = -1;        // in place of an errno
constexpr int64_t kMaxGraceMs = 1 << 30;  // twelve days: a longer one is no grace

// The C library's two objects that describe how to spawn.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }

  void WriteInitSteps(int steps) { posix_spawn_file_actions_adddup2(&actions_, steps, kStepsFd); }

  void Redirect(int log, int ready) {
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, log, 1);
    posix_spawn_file_actions_adddup2(&actions_, 1, 2);
    posix_spawn_file_actions_adddup2(&actions_, ready, kReadyFd);
  }

  // Signals start out blocked, so that one which is sent at once waits until the supervisor can
  // take it instead of ending it. Were SIGCHLD ignored, as we may do, it could not await its child.
  void Detach() {
    sigset_t all, child;
    sigfillset(&all);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    posix_spawnattr_setsigmask(&attributes_, &all);
    posix_spawnattr_setsigdefault(&attributes_, &child);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }

  int Spawn(const std::string& program, char* const* argv, char* const* env, pid_t* pid) const {
    return posix_spawn(pid, program.c_str(), &actions_, &attributes_, argv, env);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

constexpr char kDirOption[] = "--dir";  // comes first: RunningFolders

std::string PathOf(const std::string& home, const std::string& digest) {
  return absl::StrCat(home, "/bin/shirabe-supervisor-", digest);
}

std::vector<std::string> Arguments(const SpawnRequest& request) {
  std::vector<std::string> argv = {request.supervisor};
  const auto add = [&argv](const char* name, const std::string& value) {
    argv.emplace_back(name);
    argv.push_back(value);
  };
  add(kDirOption, request.dir);
  add("--id", request.id);
  add("--ready-fd", absl::StrCat(kReadyFd));
  add("--grace-ms",
      absl::StrCat(std::clamp<int64_t>(absl::ToInt64Milliseconds(request.grace), 0, kMaxGraceMs)));
  if (!request.working_dir.empty()) add("--cwd", request.working_dir);
  if (!request.devices.empty()) add("--devices", request.devices);
  if (!request.place.empty()) add("--place", request.place);
  if (!request.steps.empty()) add("--steps-fd", absl::StrCat(kStepsFd));
  if (request.limit) {
    add("--limit-ms", absl::StrCat(std::clamp<int64_t>(absl::ToInt64Milliseconds(*request.limit), 1,
                                                       std::numeric_limits<int64_t>::max() / 4)));
    add("--limit-of", request.limit_of);
  }
  argv.emplace_back("--");
  argv.insert(argv.end(), request.argv.begin(), request.argv.end());
  return argv;
}

std::vector<std::string> Assignments(const std::map<std::string, std::string>& environment) {
  std::vector<std::string> env;
  env.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    env.push_back(absl::StrCat(name, "=", value));
  }
  return env;
}

// As trial/supervisor/command.h says.
std::string StepsText(const std::vector<SpawnStep>& steps) {
  std::string text;
  const auto add = [&text](const std::string& part) { text.append(part.c_str(), part.size() + 1); };
  const auto add_list = [&](const std::vector<std::string>& parts) {
    add(absl::StrCat(parts.size()));
    for (const std::string& part : parts) add(part);
  };
  for (const SpawnStep& step : steps) {
    add(step.name);
    add(step.working_dir);
    add_list(step.argv);
    add_list(Assignments(step.environment));
  }
  return text;
}

// A file without a name, so that no other process reads what is in the environment.
StatusOr<Fd> WriteSteps(const std::vector<SpawnStep>& steps) {
  const std::string text = StepsText(steps);
  const Fd file(memfd_create("shirabe-steps", MFD_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("cannot hand over the init containers", errno);
  const ssize_t written = write(file.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) {
    return ErrnoStatus("cannot hand over the init containers", written < 0 ? errno : ENOSPC);
  }
  Fd moved(fcntl(file.get(), F_DUPFD_CLOEXEC, kFreeFd));
  if (!moved.valid()) return ErrnoStatus("cannot hand over the init containers", errno);
  return moved;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

Status SpawnError(const SpawnRequest& request, int error) {
  const std::string what = "cannot start " + request.supervisor;
  switch (error) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT: return absl::ResourceExhaustedError(Message(ErrnoStatus(what, error)));
    case kEndedSilently: return absl::UnavailableError(what + ": it ended at once; was it killed?");
    case E2BIG:
      return absl::InvalidArgumentError(
          "the command's arguments and environment are larger than the system can pass; give large "
          "values in a file, as SHIRABE_PARAMS_FILE does for the parameters");
    case EACCES:
      return absl::PermissionDeniedError(absl::StrCat(
          Message(ErrnoStatus(what, error)), "; if its file system is mounted noexec, set ",
          "SHIRABE_HOME to a directory on another one"));
    default: return ErrnoStatus(what, error);
  }
}

// The supervisor's word on how the start went; an errno. It is given within a millisecond unless
// the disk hangs.
int AwaitReady(int fd) {
  pollfd waiting = {fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&waiting, 1, kReadyTimeoutMs);
  } while (ready < 0 && errno == EINTR);
  int error = 0;
  if (ready <= 0) return ETIMEDOUT;
  return read(fd, &error, sizeof error) == sizeof error ? error : kEndedSilently;
}

Status WriteProgram(const std::string& path, std::string_view program) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755));
  if (!fd.valid()) return ErrnoStatus("cannot create " + path, errno);
  RETURN_IF_ERROR(WriteAll(fd.get(), program, path));
  // The umask of the user who runs us must not take the right to execute away.
  if (fchmod(fd.get(), 0755) != 0) return ErrnoStatus("cannot chmod " + path, errno);
  return absl::OkStatus();
}

bool IsInPlace(const std::string& path, std::string_view program) {
  const auto there = ReadFile(path);
  return there.ok() && *there == program && access(path.c_str(), X_OK) == 0;
}

}  // namespace

StatusOr<pid_t> SpawnSupervisor(const SpawnRequest& request) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return SpawnError(request, errno);
  const Fd in(ends[0]);
  Fd out(ends[1]);
  std::vector<std::string> argv = Arguments(request);
  std::vector<std::string> env = Assignments(request.environment);
  Fd steps;
  if (!request.steps.empty()) {
    ASSIGN_OR_RETURN(steps, WriteSteps(request.steps));
  }
  SpawnPlan plan;
  plan.Redirect(request.log, out.get());
  if (steps.valid()) plan.WriteInitSteps(steps.get());
  plan.Detach();
  pid_t pid = -1;
  int error = plan.Spawn(request.supervisor, Pointers(argv).data(), Pointers(env).data(), &pid);
  if (error != 0) return SpawnError(request, error);
  out = Fd();
  error = AwaitReady(in.get());
  if (error == 0) return pid;
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, error == ETIMEDOUT ? WNOHANG : 0);
  return SpawnError(request, error);
}

std::vector<std::string> RunningFolders(const std::string& home) {
  std::vector<std::string> folders;
  for (const pid_t pid : AllProcesses()) {
    const auto command = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
    if (!command.ok() || !command->starts_with(PathOf(home, ""))) continue;
    const std::vector<std::string> words = absl::StrSplit(*command, '\0');
    if (words.size() > 2 && words[1] == kDirOption) folders.push_back(words[2]);
  }
  return folders;
}

StatusOr<std::string> UnpackSupervisor(const std::string& home) {
  const std::string_view program = SupervisorProgram();
  const std::string dir = home + "/bin";
  const std::string digest = HexSha256(program).substr(0, 12);
  const std::string path = PathOf(home, digest);
  if (IsInPlace(path, program)) return path;
  RETURN_IF_ERROR(MakeDirs(dir));
  // Several processes may do this at once: each has its own file until the rename.
  static std::atomic<int> count = 0;
  const std::string beside = absl::StrCat(path, ".", getpid(), ".", count++);
  Status status = WriteProgram(beside, program);
  if (status.ok() && rename(beside.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus("cannot rename " + beside + " to " + path, errno);
  }
  if (status.ok()) return path;
  unlink(beside.c_str());
  return status;
}

}  // namespace shirabe::trial
