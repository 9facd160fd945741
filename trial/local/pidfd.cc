#include "trial/local/pidfd.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"

namespace shirabe::trial {
namespace {

constexpr int kMaxRounds = 20;
constexpr int kRoundTimeoutMs = 250;

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

bool HasVariable(pid_t pid, const std::string& assignment) {
  const auto environment = ReadFile(absl::StrCat("/proc/", pid, "/environ"));
  if (!environment.ok()) return false;  // another user's, or gone
  // Entries end with NUL; the first one has none before it.
  const std::string wanted = assignment + '\0';
  return environment->compare(0, wanted.size(), wanted) == 0 ||
         environment->find('\0' + wanted) != std::string::npos;
}

bool IsInSession(pid_t pid, pid_t session) { return session > 0 && getsid(pid) == session; }

// A zombie has been killed already, and is its parent's to bury.
bool IsZombie(pid_t pid) {
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  const size_t close = stat.ok() ? stat->rfind(')') : std::string::npos;
  return close == std::string::npos || close + 2 >= stat->size() || (*stat)[close + 2] == 'Z';
}

// One look around: kills what it finds and waits a little for it to be gone. False if nothing was.
bool KillRound(const std::string& assignment, pid_t session) {
  std::vector<Fd> pinned;
  std::vector<pollfd> waiting;
  for (const pid_t pid : AllProcesses()) {
    if (pid == getpid()) continue;
    if (!IsInSession(pid, session) && !HasVariable(pid, assignment)) continue;
    // Pin it, then look again: the number may have passed to another process meanwhile.
    Fd pidfd = OpenPidfd(pid);
    if (!pidfd.valid() || IsZombie(pid)) continue;
    if (!IsInSession(pid, session) && !HasVariable(pid, assignment)) continue;
    if (!SendSignal(pidfd, SIGKILL).ok()) continue;
    waiting.push_back({pidfd.get(), POLLIN, 0});
    pinned.push_back(std::move(pidfd));
  }
  if (!waiting.empty()) poll(waiting.data(), waiting.size(), kRoundTimeoutMs);
  return !waiting.empty();
}

}  // namespace

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

void KillLeftovers(const std::string& id, pid_t session) {
  const std::string assignment = absl::StrCat(kAttemptIdVariable, "=", id);
  for (int round = 0; round < kMaxRounds; ++round) {
    if (!KillRound(assignment, session)) return;
  }
  Log(LogLevel::kWarning, "failed to kill processes of a lost attempt", {{"attempt_id", id}});
}

}  // namespace shirabe::trial
