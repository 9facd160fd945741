// tensorboard: the trials of an experiment in TensorBoard, while they run and after.
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/registry.h"
#include "base/temporary_folder.h"
#include "client/state_location.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "tracking/tensorboard_log.h"

namespace shirabe::cmd {
namespace {

// Where the shell would find it; nullopt if PATH has no such program.
std::optional<std::string> FindOnPath(const std::string& name) {
  const std::string path = client::ProcessEnvironment()("PATH").value_or("");
  for (const auto& folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    const std::string program = absl::StrCat(folder, "/", name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return std::nullopt;
}

// A program that runs beside the verb, in a process group of its own, and ends with it: however the
// verb ends, also by SIGKILL, none of its processes stays.
class Companion {
 public:
  // `words[0]` is its path.
  static StatusOr<std::unique_ptr<Companion>> Start(const std::vector<std::string>& words);
  // Asks all of it to end, and after five seconds ends it.
  ~Companion();
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  // How it ended, in words, as "exit code 1"; nullopt while it runs.
  std::optional<std::string> Ended();

 private:
  explicit Companion(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  std::optional<std::string> ended_;
};

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

constexpr absl::Duration kFollowInterval = absl::Seconds(1);

struct TensorboardFlags {
  std::vector<std::string> names;
  std::optional<int64_t> port;
  std::string logdir;
  bool files_only = false;
};

Status CheckTensorboardFlags(const TensorboardFlags& flags) {
  if (flags.port.value_or(0) > 65535) return UsageError("--port must be at most 65535");
  if (!flags.files_only) return absl::OkStatus();
  if (flags.port) return UsageError("--port is of TensorBoard, which --files-only does not start");
  if (flags.logdir.empty()) return UsageError("--files-only needs --logdir DIR: what it writes to");
  return absl::OkStatus();
}

// Null with --files-only.
StatusOr<std::unique_ptr<Companion>> StartTensorboard(const TensorboardFlags& flags,
                                                      const std::string& program,
                                                      const std::string& folder) {
  if (flags.files_only) return std::unique_ptr<Companion>();
  std::vector<std::string> words = {program,     "--logdir",          folder, "--host",
                                    "127.0.0.1", "--reload_interval", "2"};
  if (flags.port) {
    words.push_back("--port");
    words.push_back(absl::StrCat(*flags.port));
  }
  return Companion::Start(words);
}

StatusOr<std::string> TensorboardProgram(const TensorboardFlags& flags) {
  if (flags.files_only) return std::string();
  if (const auto found = FindOnPath("tensorboard")) return *found;
  return absl::NotFoundError(
      "there is no tensorboard on PATH: `pip install tensorboard setuptools`, or write the files "
      "alone with --files-only --logdir DIR, or once with `shirabe export EXPERIMENT -o "
      "tensorboard`");
}

// Until Ctrl-C, or until TensorBoard ends. A store or server that is away for a while is said once.
StatusOr<int> FollowTrials(tracking::TensorboardLog& log, Companion* tensorboard,
                           Interrupts& interrupts) {
  bool away = false;
  while (interrupts.Wait(kFollowInterval) == 0) {
    if (tensorboard != nullptr) {
      if (const auto ended = tensorboard->Ended()) {
        return absl::InternalError("tensorboard has ended with " + *ended + ": see above");
      }
    }
    const Status updated = log.Update();
    if (absl::IsUnavailable(updated)) {
      if (!std::exchange(away, true)) Warn(Message(updated) + ": trying again");
      continue;
    }
    RETURN_IF_ERROR(updated);
    away = false;
  }
  return 0;
}

}  // namespace

StatusOr<int> Tensorboard(const Arguments& arguments) {
  Globals globals;
  TensorboardFlags flags;
  Options options(
      "tensorboard EXPERIMENT [--port N] [--logdir DIR]",
      "Shows the trials of an experiment in TensorBoard until Ctrl-C: each is a run, of "
      "all its attempts, with every metric, and the parameters stand in its HPARAMS. "
      "Follows what runs. Starts the tensorboard of PATH on 127.0.0.1, and ends it.");
  options.Arguments("EXPERIMENT", &flags.names, 1, 1);
  options.Number("--port", &flags.port, 0, "of TensorBoard (default the first free from 6006 on)");
  options.Text("--logdir", &flags.logdir, "DIR",
               "where to write its files, which then stay (default a temporary folder)");
  options.Flag("--files-only", &flags.files_only,
               "write and follow, and start no TensorBoard: for one that runs elsewhere");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  RETURN_IF_ERROR(CheckTensorboardFlags(flags));
  ASSIGN_OR_RETURN(const std::string program, TensorboardProgram(flags));
  // Before anything starts a thread: the signals are to reach none of them.
  Interrupts interrupts;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(flags.names[0], session.ns));
  RETURN_IF_ERROR(session.client->GetExperiment(key).status());
  std::unique_ptr<TemporaryFolder> temporary;
  if (flags.logdir.empty()) {
    ASSIGN_OR_RETURN(temporary, TemporaryFolder::Create("shirabe-tensorboard"));
  }
  const std::string folder = temporary == nullptr ? flags.logdir : temporary->path();
  ASSIGN_OR_RETURN(const auto log, tracking::TensorboardLog::Open({*session.client, key, folder}));
  RETURN_IF_ERROR(log->Update());
  ProgressLine(
      absl::StrCat(log->trials(), " trials of ", key.name, " in ", folder, "; Ctrl-C ends it"));
  ASSIGN_OR_RETURN(const auto tensorboard, StartTensorboard(flags, program, folder));
  return FollowTrials(*log, tensorboard.get(), interrupts);
}

SHIRABE_REGISTER(Verb, {.name = "tensorboard",
                        .group = VerbGroup::kRead,
                        .summary = "the trials in TensorBoard",
                        .completes = CompleteExperiments,
                        .outputs = {},
                        .run = Tensorboard});

}  // namespace shirabe::cmd
