#include "trial/local/pidfd.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"

namespace shirabe::trial {

namespace {

constexpr int kMaxRounds = 20;
constexpr int kRoundTimeoutMs = 250;
constexpr int kExecMs = 50;  // until one that is in the middle of an exec is looked at again

// Empty if that is another user's, or gone.
std::string ReadOf(pid_t pid, const char* what) {
  return ReadFile(absl::StrCat("/proc/", pid, "/", what)).value_or("");
}

// A kernel thread and a zombie are none.
bool IsProgram(pid_t pid) {
  char path[1];
  return readlink(absl::StrCat("/proc/", pid, "/exe").c_str(), path, sizeof path) > 0;
}

// Whether the environment has it; nullopt in the middle of an exec: for a moment there are neither
// arguments nor environment.
std::optional<bool> HasVariable(pid_t pid, const std::string& assignment) {
  std::string environment = ReadOf(pid, "environ");
  if (environment.empty()) {
    if (ReadOf(pid, "cmdline").empty()) return IsProgram(pid) ? std::nullopt : std::optional(false);
    environment = ReadOf(pid, "environ");  // of what has been executed meanwhile
  }
  // Entries end with NUL; the first one has none before it.
  const std::string wanted = assignment + '\0';
  return environment.compare(0, wanted.size(), wanted) == 0 ||
         environment.find('\0' + wanted) != std::string::npos;
}

bool IsInSession(pid_t pid, pid_t session) { return session > 0 && getsid(pid) == session; }

// A zombie has been killed already, and is its parent's to bury.
bool IsZombie(pid_t pid) {
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  const size_t close = stat.ok() ? stat->rfind(')') : std::string::npos;
  return close == std::string::npos || close + 2 >= stat->size() || (*stat)[close + 2] == 'Z';
}

// One look around: kills what it finds and waits a little for it to be gone. False if there was
// nothing, and nothing that is to be looked at again.
bool KillRound(const std::string& assignment, pid_t session) {
  bool unsure = false;
  const auto is_ours = [&](pid_t pid) {
    if (IsInSession(pid, session)) return true;
    const std::optional<bool> has = HasVariable(pid, assignment);
    unsure |= !has;
    return has.value_or(false);
  };
  std::vector<Fd> pinned;
  std::vector<pollfd> waiting;
  for (const pid_t pid : AllProcesses()) {
    if (pid == getpid() || !is_ours(pid)) continue;
    // Pin it, then look again: the number may have passed to another process meanwhile.
    Fd pidfd = OpenPidfd(pid);
    if (!pidfd.valid() || IsZombie(pid) || !is_ours(pid)) continue;
    if (!SendSignal(pidfd, SIGKILL).ok()) continue;
    waiting.push_back({pidfd.get(), POLLIN, 0});
    pinned.push_back(std::move(pidfd));
  }
  if (waiting.empty() && !unsure) return false;
  poll(waiting.data(), waiting.size(), waiting.empty() ? kExecMs : kRoundTimeoutMs);
  return true;
}

constexpr uint64_t kStopId = ~uint64_t{0};
constexpr int kBatch = 128;

Status Add(const Fd& epoll, const Fd& fd, uint64_t id) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLONESHOT;
  event.data.u64 = id;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot watch a process", errno);
}

}  // namespace

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  while (const dirent* entry = proc ? readdir(proc.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size() && pid > 0) pids.push_back(pid);
  }
  return pids;
}

Fd OpenPidfd(pid_t pid) { return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

Status SendSignal(const Fd& pidfd, int signal, int value) {
  siginfo_t info;
  std::memset(&info, 0, sizeof info);
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = value;
  if (syscall(SYS_pidfd_send_signal, pidfd.get(), signal, &info, 0) == 0 || errno == ESRCH) {
    return absl::OkStatus();
  }
  return ErrnoStatus(absl::StrCat("cannot send signal ", signal), errno);
}

Status SendStop(const Fd& pidfd, absl::Duration grace) {
  if (grace <= absl::ZeroDuration()) return SendSignal(pidfd, SIGUSR1);
  const int64_t grace_ms = std::min<int64_t>(absl::ToInt64Milliseconds(grace), 1 << 30);
  return SendSignal(pidfd, kStopSignal, static_cast<int>(grace_ms));
}

void KillLeftovers(const std::string& id, pid_t session) {
  const std::string assignment = absl::StrCat(kAttemptIdVariable, "=", id);
  for (int round = 0; round < kMaxRounds; ++round) {
    if (!KillRound(assignment, session)) return;
  }
  Log(LogLevel::kWarning, "failed to kill processes of a lost attempt", {{"attempt_id", id}});
}

StatusOr<std::unique_ptr<ExitWatcher>> ExitWatcher::Create(OnExits on_exits) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus("cannot create an epoll descriptor", errno);
  Fd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return ErrnoStatus("cannot create an eventfd", errno);
  RETURN_IF_ERROR(Add(epoll, stop, kStopId));
  return std::make_unique<ExitWatcher>(std::move(epoll), std::move(stop), std::move(on_exits));
}

ExitWatcher::ExitWatcher(Fd epoll, Fd stop, OnExits on_exits)
    : epoll_(std::move(epoll)), stop_(std::move(stop)), on_exits_(std::move(on_exits)) {
  thread_ = std::thread([this] { Run(); });
}

ExitWatcher::~ExitWatcher() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

Status ExitWatcher::Watch(const Fd& pidfd, uint64_t id) { return Add(epoll_, pidfd, id); }

void ExitWatcher::Run() {
  epoll_event events[kBatch];
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events, kBatch, -1);
    if (count < 0 && errno == EINTR) continue;
    CHECK(count > 0);
    std::vector<uint64_t> ids;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kStopId) return;
      ids.push_back(uint64_t{events[i].data.u64});  // a copy: the kernel packs its events
    }
    on_exits_(ids);
  }
}

}  // namespace shirabe::trial
