// shirabe-supervisor: starts one command and stays until nothing of it is left.
//
//   shirabe-supervisor --dir DIR --id ID [options] -- COMMAND ARG…
//
// It outlives the process that started it, so that a trial goes on when Shirabe is killed, and
// needs nothing from it: once it has said on --ready-fd how the start went (an int: 0 or an errno,
// and then nothing was started), the two talk through two files and signals only.
//
//   DIR/pid   published before the command starts, never replaced: its publisher owns the
//             attempt, a second supervisor that comes late starts nothing.
//               pid P / start T (clock ticks, as in /proc/P/stat) / boot B / id ID /
//               place TEXT / devices LIST / began NS / child C (filled in once the command runs)
//   DIR/exit  published at the end, when no process is left:
//               id ID / code N (exit code; 128+n after signal n) / signal N / oom 0|1 / killed 0|1
//               / told 0|1 (it was asked to end, or killed, before it did) / overdue TEXT (that
//               of --limit-of, if its time was over) / began NS / ended NS
//               (Unix time, of the command itself) / ran NS (by a clock that is never set) /
//               message TEXT
//
//   signal 40        queued with a value: end within so many milliseconds. The command's process
//                    group gets SIGTERM, the first time only; what is left then is killed. A real-
//                    time signal, because two ordinary ones may become one, and lose the shorter.
//   SIGTERM, SIGINT  passed on to the process group; the grace is that of --grace-ms.
//   SIGUSR1, SIGQUIT kill everything now.
//
// The command gets descriptors 0, 1 and 2 of the supervisor and no other, a process group of its
// own, and signals as they are by default. It is killed if the supervisor is. The supervisor is a
// subreaper: a descendant whose parent ends becomes its child, whatever session or group it moved
// to, so that following parents finds them all. No shell, no cgroups.
//
//   --steps-fd N     commands that run before COMMAND (command.h); a failure is the last
//   --limit-ms N     it may run so long from the first of them on, then it is asked to end, with
//                    the grace of --grace-ms; --limit-of TEXT says whose limit that is
//
// As the first process of a container (trial/pod/pod_names.h):
//   --log FILE       the command's output goes to FILE and to our standard output (command.h)
//   --env-file FILE  NAME=value lines for its environment
//   --control FILE   where a SIGTERM is announced as {"reason": "preempt"} before it is passed on
// and DIR/alive is held locked.
//
// The exit code is the command's; 125 if the supervisor could not start its work.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trial/supervisor/command.h"
#include "trial/supervisor/records.h"
#include "trial/supervisor/system.h"

enum {
  kStopSignal = 40,
  kLeftoverGraceMs = 2000,  // for what the command leaves behind when it ends by itself
  kYielded = 75,            // an exit code: run me again
  kGiveUpMs = 10000,        // a process that SIGKILL does not end in this time hangs in the kernel
};

struct Options {
  const char* dir;
  const char* id;
  const char* devices;
  const char* place;  // for the record, as are the devices
  const char* log;    // NULL = the command writes where we do
  const char* env_file;
  const char* control;
  long grace_ms;
  long limit_ms;         // 0 = none
  const char* limit_of;  // for the record
  int ready_fd;          // -1 = none waits
  int steps_fd;          // -1 = there are none
  struct Steps steps;
  struct Command command;
};

// Everything that changes while the command runs.
struct State {
  pid_t child;
  int status;             // of the command, once ended
  int ended;              // the command itself was reaped
  int alone;              // no descendant is left
  int stopping;           // we were asked to stop it
  int cleaning;           // what it left behind has been told to end
  int killed;             // we used SIGKILL before the command had ended
  int told;               // we were asked to end it before it had
  int step;               // which command runs; the last is that of the options
  int overdue;            // its time was over before it had ended
  long limit_at_ms;       // when it is over; monotonic, -1 = never
  long deadline_ms;       // when to use SIGKILL; monotonic, -1 = never
  long kill_from_ms;      // when SIGKILL was first used, 0 = not yet
  int pause_ms;           // until the next round of SIGKILL
  int signal_fd;          // with output to copy, signals come this way
  struct Output* output;  // NULL = none to copy
  long long began_ns, ended_ns;
  long long from_ns, ran_ns;  // monotonic
};

// ---- supervision --------------------------------------------------------------------------------

static void reap(struct State* state) {
  int status;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != state->child) continue;
    state->ended = 1;
    state->status = status;
    state->ended_ns = unix_ns();
    state->ran_ns = monotonic_ns() - state->from_ns;
  }
  state->alone = pid < 0 && errno == ECHILD;
}

static void shorten(struct State* state, long grace_ms) {
  const long deadline = monotonic_ms() + (grace_ms > 0 ? grace_ms : 0);
  if (state->deadline_ms < 0 || deadline < state->deadline_ms) state->deadline_ms = deadline;
}

static void handle(struct State* state, const struct Options* options, const siginfo_t* info) {
  const int signal = info->si_signo;
  const int again = signal == kStopSignal && state->stopping;
  reap(state);  // it may have ended by itself just before
  if (!state->ended) state->told = 1;
  if (signal == SIGUSR1 || signal == SIGQUIT) shorten(state, 0);
  if (signal == kStopSignal) shorten(state, info->si_value.sival_int);
  if (signal == SIGTERM || signal == SIGINT) shorten(state, options->grace_ms);
  if (again || (signal != kStopSignal && signal != SIGTERM && signal != SIGINT)) return;
  state->stopping = 1;
  if (options->control != NULL && !state->ended) write_notice(options->control, options->grace_ms);
  // Until it is reaped, the command's number, and so its group's, is no other process's.
  if (!state->ended) kill(-state->child, signal == SIGINT ? SIGINT : SIGTERM);
}

// The command has ended and left processes behind. When it was asked to stop, its group knows, may
// be saving its work, and has the whole grace; otherwise everything is told now.
static void clean(struct State* state) {
  state->cleaning = 1;
  signal_descendants(SIGTERM, state->stopping ? state->child : 0);
  if (!state->stopping) shorten(state, kLeftoverGraceMs);
}

// One round: new processes may have been started since the last one.
static void kill_all(struct State* state, long now) {
  if (state->kill_from_ms == 0) state->kill_from_ms = now;
  if (!state->ended) state->killed = 1;
  signal_descendants(SIGKILL, 0);
  state->pause_ms = state->pause_ms == 0 ? 1 : state->pause_ms < 100 ? 2 * state->pause_ms : 100;
}

// The next signal within so many milliseconds (-1 = for ever), as sigtimedwait; meanwhile copies
// what the command says. May come back with nothing before the time is over.
static int await_signal(struct State* state, const sigset_t* signals, long wait_ms,
                        siginfo_t* info) {
  const struct timespec timeout = {wait_ms / 1000, wait_ms % 1000 * 1000000};
  struct Output* output = state->output;
  if (output == NULL) return sigtimedwait(signals, info, wait_ms < 0 ? NULL : &timeout);
  struct pollfd ready[] = {{.fd = state->signal_fd, .events = POLLIN},
                           {.fd = output->from, .events = POLLIN},
                           {.fd = output->waiting > 0 ? output->stream : -1, .events = POLLOUT}};
  struct signalfd_siginfo word;
  if (poll(ready, 3, (int)wait_ms) <= 0) return -1;
  pump_output(output);
  if (read(state->signal_fd, &word, sizeof word) != sizeof word) return -1;
  memset(info, 0, sizeof *info);
  info->si_signo = (int)word.ssi_signo;
  info->si_value.sival_int = word.ssi_int;
  return info->si_signo;
}

// Its time is over: as if it were asked to end.
static void end_overdue(struct State* state, const struct Options* options) {
  state->overdue = state->told = 1;
  shorten(state, options->grace_ms);
  if (!state->stopping) kill(-state->child, SIGTERM);
  state->stopping = 1;
}

// The earlier of two times, of which -1 is never.
static long earlier(long a, long b) { return a < 0 || (b >= 0 && b < a) ? b : a; }

static void supervise(struct State* state, const struct Options* options, const sigset_t* signals) {
  for (;;) {
    reap(state);
    const long now = monotonic_ms();
    const long limit_ms = state->ended || state->told ? -1 : state->limit_at_ms;
    if (limit_ms >= 0 && now >= limit_ms) end_overdue(state, options);
    if (state->ended && state->alone) return;
    if (state->ended && state->kill_from_ms != 0 && now - state->kill_from_ms > kGiveUpMs) return;
    if (state->ended && !state->cleaning) clean(state);
    const int due = state->deadline_ms >= 0 && now >= state->deadline_ms;
    if (due) kill_all(state, now);
    const long next = earlier(state->deadline_ms, limit_ms);
    const long left_ms = due ? state->pause_ms : next < 0 ? -1 : next > now ? next - now : 0;
    siginfo_t info;
    if (await_signal(state, signals, left_ms, &info) > 0) {
      handle(state, options, &info);
    }
  }
}

// ---- start --------------------------------------------------------------------------------------

static int parse(int argc, char** argv, struct Options* options) {
  *options = (struct Options){.devices = "",
                              .place = "",
                              .grace_ms = 15000,
                              .limit_of = "",
                              .ready_fd = -1,
                              .steps_fd = -1};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--") == 0) {
      options->command.argv = argv + i + 1;
      break;
    }
    if (strcmp(argv[i], "--dir") == 0) options->dir = argv[i + 1];
    if (strcmp(argv[i], "--id") == 0) options->id = argv[i + 1];
    if (strcmp(argv[i], "--cwd") == 0) options->command.cwd = argv[i + 1];
    if (strcmp(argv[i], "--devices") == 0) options->devices = argv[i + 1];
    if (strcmp(argv[i], "--place") == 0) options->place = argv[i + 1];
    if (strcmp(argv[i], "--log") == 0) options->log = argv[i + 1];
    if (strcmp(argv[i], "--env-file") == 0) options->env_file = argv[i + 1];
    if (strcmp(argv[i], "--control") == 0) options->control = argv[i + 1];
    if (strcmp(argv[i], "--ready-fd") == 0) options->ready_fd = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--steps-fd") == 0) options->steps_fd = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--limit-of") == 0) options->limit_of = argv[i + 1];
    if (strcmp(argv[i], "--limit-ms") == 0) options->limit_ms = strtol(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--grace-ms") == 0) options->grace_ms = strtol(argv[i + 1], NULL, 10);
  }
  return options->dir != NULL && options->id != NULL && options->command.argv != NULL;
}

static const struct Command* current(const struct Options* o, const struct State* state) {
  return state->step < o->steps.count ? &o->steps.commands[state->step] : &o->command;
}

// Why it ended as it did, where the command itself does not say it.
static void explain(const struct Options* options, const struct State* state, char* message) {
  describe_failure(current(options, state), state->status, message);
  if (!state->overdue) return;
  snprintf(message, kMessageBytes, "it ran longer than the %ld s that %s allows",
           options->limit_ms / 1000, options->limit_of);
}

// A step that wants to be run again has failed all the same: it has saved nothing.
static int code_of(const struct Options* options, const struct State* state) {
  const int code = exit_code(state->status);
  return code == kYielded && state->step < options->steps.count ? 1 : code;
}

// A line for people, where the command's own output goes.
static void complain(const struct State* state, const char* line) {
  if (state->output == NULL) dprintf(STDERR_FILENO, "%s", line);
  if (state->output != NULL) say(state->output, line);
}

// Tells how it ended, in the record and, where it never began, in the log.
static void report(const struct Options* options, const struct State* state, int fd, int oom) {
  char message[kMessageBytes], line[kPathBytes + kMessageBytes];
  explain(options, state, message);
  snprintf(line, sizeof line, "shirabe: %s\n", message);
  if (message[0] != '\0') complain(state, line);
  if (state->output != NULL) finish_output(state->output);
  const struct ExitRecord record = {
      .id = options->id,
      .code = code_of(options, state),
      .signal = WIFSIGNALED(state->status) ? WTERMSIG(state->status) : 0,
      .oom = oom,
      .killed = state->killed,
      .told = state->told,
      .overdue = state->overdue ? options->limit_of : "",
      .began_ns = state->began_ns,
      .ended_ns = state->ended_ns,
      .ran_ns = state->ran_ns,
      .message = message,
  };
  if (publish_exit(options->dir, &record, fd) != 0) {
    snprintf(line, sizeof line, "shirabe: cannot write %s/exit: %s\n", options->dir,
             strerror(errno));
    complain(state, line);
  }
}

// Signals wait until they are asked for; descriptors of our starter are none of ours.
static void prepare(const struct Options* options, sigset_t* signals) {
  syscall(kCloseRange, options->ready_fd < 3 ? 3U : (unsigned)options->ready_fd + 1, ~0U, 0U);
  if (options->ready_fd >= 0) fcntl(options->ready_fd, F_SETFD, FD_CLOEXEC);
  sigfillset(signals);
  sigprocmask(SIG_BLOCK, signals, NULL);
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

// Tells our starter that the command is on its way (0), or why it is not (an errno).
static int tell(const struct Options* options, int error) {
  if (options->ready_fd < 0) return error;
  // No reader may be left, which changes nothing.
  if (write(options->ready_fd, &error, sizeof error) < 0) errno = 0;
  close(options->ready_fd);
  return error;
}

// Publishes that the attempt is taken, then starts the command. 0 or an errno, and then nothing was
// started and nothing is published.
static int begin(const struct Options* options, struct State* state, int* exit_record) {
  char path[kPathBytes];
  off_t child_field;
  state->began_ns = unix_ns();
  state->from_ns = monotonic_ns();
  if (options->limit_ms > 0) state->limit_at_ms = monotonic_ms() + options->limit_ms;
  const struct PidRecord record = {options->id, options->devices, options->place, state->began_ns};
  const int fd = publish_pid(options->dir, &record, &child_field);
  if (fd < 0) return errno;
  *exit_record = reserve_exit(options->dir);
  state->child = start_command(current(options, state));
  if (state->output != NULL) hand_over_output(state->output);
  if (state->child > 0) {
    write_child(fd, child_field, state->child);
    return 0;
  }
  const int error = errno;
  snprintf(path, sizeof path, "%s/pid", options->dir);
  unlink(path);
  return error;
}

// Starts what comes after a step that has succeeded; 0 if nothing does.
static int go_on(const struct Options* options, struct State* state) {
  if (state->step >= options->steps.count || state->told || exit_code(state->status) != 0) return 0;
  ++state->step;
  state->ended = state->alone = state->cleaning = state->killed = 0;
  state->deadline_ms = -1;
  state->kill_from_ms = state->pause_ms = 0;
  state->child = start_command(current(options, state));
  if (state->child > 0) return 1;
  char line[kMessageBytes];
  snprintf(line, sizeof line, "shirabe: cannot start the next process: %s\n", strerror(errno));
  complain(state, line);
  state->status = kNoSupervisor << 8;  // as waitpid says that a process ended with this code
  return 0;
}

// No process waits for word of a start that failed in a container: the container's log has it.
static int refuse(const struct Options* options, int error) {
  if (options->log != NULL) {
    dprintf(STDERR_FILENO, "shirabe: cannot take up the attempt in %s: %s\n", options->dir,
            strerror(error));
  }
  return kNoSupervisor;
}

// For a container; see above.
static int prepare_pod(struct Options* options, const sigset_t* signals, struct State* state) {
  static struct Output output;
  if (options->env_file != NULL) read_environment(options->env_file);
  if (options->log == NULL) return 0;
  lock_alive(options->dir);
  state->signal_fd = signalfd(-1, signals, SFD_NONBLOCK | SFD_CLOEXEC);
  if (state->signal_fd < 0 || open_output(&output, options->log) != 0) return errno;
  state->output = &output;
  options->command.output = &output;
  return 0;
}

int main(int argc, char** argv) {
  struct Options options;
  struct State state = {.deadline_ms = -1, .limit_at_ms = -1};
  sigset_t signals;
  int exit_record = -1;
  if (!parse(argc, argv, &options)) {
    dprintf(STDERR_FILENO,
            "usage: shirabe-supervisor --dir DIR --id ID [--grace-ms N] [--cwd DIR] "
            "[--devices LIST] [--place TEXT] [--ready-fd N] [--log FILE] [--env-file FILE] "
            "[--control FILE] [--steps-fd N] [--limit-ms N] [--limit-of TEXT] -- COMMAND ARG...\n");
    return kNoSupervisor;
  }
  int error = read_steps(options.steps_fd, &options.steps);
  prepare(&options, &signals);
  const long oom_before = oom_kills();
  if (error == 0) error = prepare_pod(&options, &signals, &state);
  if (error == 0) error = begin(&options, &state, &exit_record);
  if (tell(&options, error) != 0) return refuse(&options, error);
  do {
    supervise(&state, &options, &signals);
  } while (go_on(&options, &state));
  const int by_kill = exit_code(state.status) == 128 + SIGKILL;
  const int oom = by_kill && !state.killed && oom_before >= 0 && oom_kills() > oom_before;
  report(&options, &state, exit_record, oom);
  return code_of(&options, &state);
}
