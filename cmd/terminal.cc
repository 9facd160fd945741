#include "cmd/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file_io.h"
#include "cmd/options.h"

namespace shirabe::cmd {
namespace {

constexpr int kDefaultWidth = 80;

// Set once by the options, before anything is printed.
bool use_color = false;
bool be_quiet = false;

void Err(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool ColorByEnvironment() {
  if (IsSet("NO_COLOR")) return false;
  if (IsSet("CLICOLOR_FORCE")) return true;
  const char* term = std::getenv("TERM");
  return StderrIsTerminal() && (term == nullptr || std::strcmp(term, "dumb") != 0);
}

const char* EscapeOf(Style style) {
  switch (style) {
    case Style::kBold: return "1";
    case Style::kRed: return "1;31";
    case Style::kYellow: return "33";
    case Style::kGreen: return "32";
    case Style::kDim: return "2";
    default: return "0";
  }
}

// Whose end is told by SIGHUP.
bool HasTerminal() { return Fd(open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY)).valid(); }

sigset_t InterruptSet() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

// Rounded up, so that a short wait is not a busy loop.
int Milliseconds(absl::Duration time) {
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(time, absl::Milliseconds(1))));
}

}  // namespace

bool StdoutIsTerminal() { return isatty(STDOUT_FILENO) == 1; }
bool StderrIsTerminal() { return isatty(STDERR_FILENO) == 1; }

int TerminalWidth() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultWidth;
  return size.ws_col;
}

void SetColor(const std::string& when) {
  use_color = when == "always" || (when != "never" && ColorByEnvironment());
}

void SetQuiet(bool quiet) { be_quiet = quiet; }
bool IsQuiet() { return be_quiet; }

std::string Styled(Style style, const std::string& text) {
  if (!use_color || style == Style::kPlain) return text;
  return std::string("\033[") + EscapeOf(style) + "m" + text + "\033[0m";
}

void Out(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

Status FlushOut() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return absl::OkStatus();
  return ErrnoStatus("cannot write the output", errno);
}

void ProgressLine(const std::string& text) {
  if (!be_quiet) Err(text + "\n");
}

void Hint(const std::string& text) {
  if (!be_quiet && StderrIsTerminal()) Err(Styled(Style::kDim, text) + "\n");
}

void Warn(const std::string& text) { Err(Styled(Style::kYellow, "warning:") + " " + text + "\n"); }

void PrintError(const Status& status) {
  const std::string text = Message(status);
  const bool says_so = text.starts_with("error: ");  // a finding of a file without a place
  Err(Styled(Style::kRed, "error:") + " " + (says_so ? text.substr(7) : text) + "\n");
}

void PrintFinding(const std::string& line, bool warning) {
  const std::string word = warning ? "warning:" : "error:";
  const size_t at = line.find(" " + word);
  if (at == std::string::npos) return Err(line + "\n");
  Err(line.substr(0, at + 1) + Styled(warning ? Style::kYellow : Style::kRed, word) +
      line.substr(at + 1 + word.size()) + "\n");
}

bool SleepUninterrupted(absl::Duration time) {
  poll(nullptr, 0, Milliseconds(time));
  return true;
}

Interrupts::Interrupts(Hangup hangup) : reloads_(hangup == Hangup::kReloads && !HasTerminal()) {
  const sigset_t set = InterruptSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  CHECK(fd_ >= 0);
}

// One that came while the program was ending already changes nothing more.
Interrupts::~Interrupts() {
  Wait(absl::ZeroDuration());
  close(fd_);
  const sigset_t set = InterruptSet();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

int Interrupts::Wait(absl::Duration time) {
  pollfd waited{.fd = fd_, .events = POLLIN, .revents = 0};
  poll(&waited, 1, Milliseconds(time));
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof info) == sizeof info) {
    if (reloads_ && info.ssi_signo == SIGHUP) {
      hangup_ = true;
    } else {
      ++count_;
    }
  }
  return count_;
}

int ExitCodeOf(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return kOk;
    case absl::StatusCode::kInvalidArgument: return IsUsage(status) ? kUsage : kInvalidSpec;
    case absl::StatusCode::kNotFound: return kMissing;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kFailedPrecondition: return kConflict;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated: return kDenied;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted: return kUnreachable;
    case absl::StatusCode::kDeadlineExceeded: return kTimedOut;
    case absl::StatusCode::kCancelled: return kInterrupted;
    default: return kFailure;
  }
}

}  // namespace shirabe::cmd
