#include "cmd/verbs/tracking/companion.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/state_location.h"
#include "cmd/terminal.h"

namespace shirabe::cmd {
namespace {

constexpr int kEndPolls = 50;
constexpr absl::Duration kEndPoll = absl::Milliseconds(100);

// In the child, of a process that may have threads: only what POSIX allows between fork and exec.
[[noreturn]] void RunInChild(pid_t parent, char* const* argv) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);  // it ended before that
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);  // Interrupts has blocked some
  execv(argv[0], argv);
  _exit(127);
}

}  // namespace

std::optional<std::string> FindOnPath(const std::string& name) {
  const std::string path = client::ProcessEnvironment()("PATH").value_or("");
  for (const auto& folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    const std::string program = absl::StrCat(folder, "/", name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

StatusOr<std::unique_ptr<Companion>> Companion::Start(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoStatus("cannot start " + words[0], errno);
  if (pid == 0) RunInChild(parent, argv.data());
  setpgid(pid, pid);                                      // whichever of the two comes first
  return std::unique_ptr<Companion>(new Companion(pid));  // private
}

Companion::~Companion() {
  kill(-pid_, SIGTERM);
  for (int i = 0; i < kEndPolls && !Ended(); ++i) SleepUninterrupted(kEndPoll);
  kill(-pid_, SIGKILL);  // what it has started, too
  if (!ended_) waitpid(pid_, nullptr, 0);
}

std::optional<std::string> Companion::Ended() {
  int status = 0;
  if (ended_ || waitpid(pid_, &status, WNOHANG) != pid_) return ended_;
  ended_ = WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                               : absl::StrCat("exit code ", WEXITSTATUS(status));
  return ended_;
}

}  // namespace shirabe::cmd
