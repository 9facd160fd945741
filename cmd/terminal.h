// What the standard streams are, how to write to them, and how to wait. stdout is data only;
// progress and hints go to stderr, hints only if that is a terminal. Used by the main thread.
#pragma once

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/status.h"

namespace shirabe::cmd {

bool StdoutIsTerminal();
bool StderrIsTerminal();
// Columns of the terminal on stderr; 80 where it does not say.
int TerminalWidth();

// auto, always or never (--color), then NO_COLOR, CLICOLOR_FORCE and TERM.
void SetColor(const std::string& when);
// With --quiet, Hint and Progress say nothing.
void SetQuiet(bool quiet);
bool IsQuiet();

enum class Style { kPlain, kBold, kRed, kYellow, kGreen, kDim };
// `text` in this style, if stderr shows colours.
std::string Styled(Style style, const std::string& text);

void Out(const std::string& text);
// Everything written has arrived; else the status says why not (a full disk).
Status FlushOut();

// A line of progress: shown unless --quiet, whatever stderr is.
void ProgressLine(const std::string& text);
// A line of advice: shown on a terminal only.
void Hint(const std::string& text);
void Warn(const std::string& text);
void PrintError(const Status& status);
// A line of a compiler's kind, file:line:col: error: …
void PrintFinding(const std::string& line, bool warning);

// Lets the time pass. Always true: an interrupt ends the process here as it usually does.
bool SleepUninterrupted(absl::Duration time);

// While it lives, SIGINT, SIGTERM and SIGHUP are counted instead of ending the process. To be made
// before any thread starts, since one that does not block them would be ended by them; at most one
// at a time.
class Interrupts {
 public:
  enum class Hangup {
    kEnds,
    kReloads,  // not counted, unless it may mean the end of a terminal: see TakeHangup
  };
  explicit Interrupts(Hangup hangup = Hangup::kEnds);
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Waits for the time, or until a signal comes; the number of them so far.
  int Wait(absl::Duration time);
  // Whether a SIGHUP has come since the last call.
  bool TakeHangup() { return std::exchange(hangup_, false); }

 private:
  const bool reloads_;
  bool hangup_ = false;
  int fd_ = -1;
  int count_ = 0;
};

// What the shell learns from an outcome. Scripts depend on these numbers; they never change.
enum ExitCode {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,
  kMissing = 3,
  kConflict = 4,  // exists already, differs, or another process has it
  kInvalidSpec = 5,
  kDenied = 6,
  kUnreachable = 7,  // locked, full or gone for now: try again
  kNoSuccess = 8,    // the experiment ended without success
  kShouldStop = 9,   // the trial that reported should stop now
  kTimedOut = 124,
  kInterrupted = 130,
};

// The only place where a status becomes an exit code.
int ExitCodeOf(const Status& status);

}  // namespace shirabe::cmd
