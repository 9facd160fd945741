#include "cmd/verbs/run_loop.h"

#include <unistd.h>

#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "cmd/terminal.h"
#include "experiment/conditions.h"
#include "view/describe_experiment.h"
#include "view/progress.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kRunPoll = absl::Milliseconds(25);
constexpr absl::Duration kRedraw = absl::Milliseconds(100);
// How long a run waits, once its experiment has ended, for endpoints that do not answer.
constexpr absl::Duration kDeliveryPatience = absl::Seconds(10);
// How long an interrupted run waits for a store that takes nothing.
constexpr absl::Duration kStuckInterruptTimeout = absl::Seconds(10);

// What is shown while it runs: on a terminal one line that is drawn again and again, below the
// lines of trials that went wrong; elsewhere a line for each trial that has ended.
class Display {
 public:
  Display(client::Client* client, view::Progress* progress)
      : client_(client), progress_(progress) {}
  ~Display() { Clear(); }

  void Show() {
    for (const v1::Trial& trial : progress_->PopFinished()) {
      if (live_ && trial.phase() != v1::TRIAL_FAILED &&
          trial.phase() != v1::TRIAL_METRICS_UNAVAILABLE) {
        continue;
      }
      Print(view::FinishedLine(progress_->experiment(), trial));
      PrintLastLines(trial);
    }
    // The live line has it; elsewhere it is said once.
    const std::string& waiting = progress_->experiment().status().shirabe().waiting();
    if (!live_ && !waiting.empty() && waited_for_.insert(waiting).second) {
      Print("waiting: " + waiting);
    }
    if (experiment::HasPendingFollowUp(progress_->experiment())) {
      std::string followed = "on success: " + view::OnSuccessLine(progress_->experiment());
      if (std::exchange(followed_, followed) != followed) Print(followed);
    }
    const absl::Duration now = RealClock()->Monotonic();
    if (!live_ || (drawn_ && now - drawn_at_ < kRedraw)) return;
    drawn_at_ = now;
    std::string line = progress_->Line(TerminalWidth() - 1);
    if (drawn_ && line == line_) return;
    std::fprintf(stderr, "\r%s\033[K", line.c_str());
    line_ = std::move(line);
    drawn_ = true;
  }

  // A line that stays.
  void Print(const std::string& line) {
    Clear();
    ProgressLine(line);
  }

  // Trouble that lasts is said once.
  void LastError(const std::string& text) {
    if (text == last_error_) return;
    last_error_ = text;
    if (text.empty()) return;
    Clear();
    Warn(text);
  }

 private:
  void Clear() {
    if (drawn_) std::fputs("\r\033[K", stderr);
    drawn_ = false;
  }

  // What a program said last, of the first failed trial that said something: most often all fail
  // for one reason.
  void PrintLastLines(const v1::Trial& trial) {
    if (last_lines_shown_ || trial.phase() == v1::TRIAL_SUCCEEDED) return;
    const auto attempts = client_->ListAttempts(
        {.experiment = experiment::KeyOf(progress_->experiment()), .trial = trial.number()});
    if (!attempts.ok() || attempts->empty() || attempts->back().log_tail().empty()) return;
    last_lines_shown_ = true;
    const std::string& tail = attempts->back().log_tail();
    for (const auto& line : absl::StrSplit(tail, '\n', absl::SkipEmpty())) {
      Print("  " + Printable(std::string(line)));
    }
  }

  client::Client* client_;
  view::Progress* progress_;
  bool last_lines_shown_ = false;
  const bool live_ = StderrIsTerminal() && !IsQuiet();
  bool drawn_ = false;
  std::string line_;  // as it was drawn
  absl::Duration drawn_at_;
  std::set<std::string> waited_for_;
  std::string followed_;  // what was said last of spec.shirabe.onSuccess
  std::string last_error_;
};

// Turns the user's interrupts into requests: once gracefully, twice at once, and a third time
// without waiting for anything.
class Stopper {
 public:
  Stopper(experiment::Controller* controller, const ExperimentKey& key, Display* display)
      : controller_(controller), key_(key), display_(display) {}

  // `count`: how often the user has interrupted so far.
  void HandleInterrupts(int count) {
    while (handled_ < count) Act(++handled_);
  }
  bool interrupted() const { return handled_ > 0; }

  // An interrupted run that cannot write down what it stops would wait for ever.
  Status CheckStuckInterrupt(const std::string& last_error) const {
    const bool long_enough =
        RealClock()->Monotonic() - since_ > kStuckInterruptTimeout || handled_ > 1;
    if (handled_ == 0 || last_error.empty() || !long_enough) return absl::OkStatus();
    return absl::UnavailableError("interrupted, but " + last_error +
                                  ". The next run takes up what still runs");
  }

 private:
  void Act(int count) {
    if (count == 1) {
      since_ = RealClock()->Monotonic();
      display_->Print("stopping: running trials may save first; once more stops them at once");
      controller_->Suspend(key_, /*now=*/false);
    } else if (count == 2) {
      display_->Print("stopping at once");
      controller_->Suspend(key_, /*now=*/true);
    } else {
      _exit(kInterrupted);
    }
  }

  experiment::Controller* controller_;
  const ExperimentKey key_;
  Display* display_;
  int handled_ = 0;
  absl::Duration since_;  // the first interrupt
};

// An experiment that has ended is not held up by who is told of it.
class DeliveryWait {
 public:
  // Whether only notifications are left, for too long.
  bool IsOver(const v1::Experiment& experiment) {
    if (!experiment::IsEnded(experiment) || experiment::HasPendingFollowUp(experiment) ||
        !experiment::HasPendingNotifications(experiment)) {
      since_.reset();
      return false;
    }
    const absl::Duration now = RealClock()->Monotonic();
    since_ = since_.value_or(now);
    return now - *since_ > kDeliveryPatience;
  }

 private:
  std::optional<absl::Duration> since_;
};

void SayUndelivered(const v1::Experiment& experiment, const std::string& again, Display& display) {
  for (const v1::NotificationStatus& endpoint : experiment.status().shirabe().notifications()) {
    if (endpoint.pending() == 0) continue;
    display.Print(absl::StrCat("warning: ", endpoint.pending(), " notifications for ",
                               endpoint.endpoint(), " are not delivered yet (", endpoint.error(),
                               "); the same command, or shirabe serve, goes on:\n  ", again));
  }
}

}  // namespace

StatusOr<RunEnd> RunUntilEnd(client::LocalClient& client, const RunLoopOptions& options,
                             Interrupts& interrupts) {
  view::Progress progress(&client, options.key);
  RETURN_IF_ERROR(progress.Update());
  Display display(&client, &progress);
  ASSIGN_OR_RETURN(const auto controller, client.MakeController(options.machines, 1));
  RETURN_IF_ERROR(controller->Own(options.key));
  Stopper stopper(controller.get(), options.key, &display);
  Status over;
  DeliveryWait deliveries;
  do {
    over = controller->Await(options.key, kRunPoll);
    stopper.HandleInterrupts(interrupts.Wait(absl::ZeroDuration()));
    // A store that fails for a while fails for the controller, too, which waits and says so.
    if (progress.Update().ok()) display.Show();
    if (options.meanwhile) options.meanwhile();
    const std::string last_error = controller->LastError(options.key);
    display.LastError(last_error);
    RETURN_IF_ERROR(stopper.CheckStuckInterrupt(last_error));
    if (deliveries.IsOver(progress.experiment())) over = absl::OkStatus();
  } while (absl::IsDeadlineExceeded(over));
  RETURN_IF_ERROR(over);
  RETURN_IF_ERROR(progress.Update());
  display.Show();
  SayUndelivered(progress.experiment(), options.again, display);
  const bool ended = experiment::IsEnded(progress.experiment()) &&
                     !experiment::HasPendingFollowUp(progress.experiment());
  if (ended || !stopper.interrupted()) return RunEnd::kEnded;
  display.Print("interrupted; nothing is lost. To go on:\n  " + options.again);
  return RunEnd::kInterrupted;
}

}  // namespace shirabe::cmd
