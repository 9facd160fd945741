#include "trial/supervisor/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trial/supervisor/system.h"

// Written by the child between vfork and exec, which share memory.
static volatile struct {
  int error;
  int in_cwd;
} failure;

// execvp without its shell for files that have no interpreter line.
static void execute(char** argv) {
  extern char** environ;
  char file[kPathBytes];
  int error = ENOENT;
  if (strchr(argv[0], '/') != NULL) {
    execve(argv[0], argv, environ);
    return;
  }
  const char* path = getenv("PATH");
  if (path == NULL) path = "/usr/local/bin:/usr/bin:/bin";
  for (;; ++path) {
    const int length = (int)strcspn(path, ":");
    const int size =
        snprintf(file, sizeof file, "%.*s%s%s", length, path, length > 0 ? "/" : "", argv[0]);
    if (size < (int)sizeof file) {
      execve(file, argv, environ);
      if (errno == EACCES) error = EACCES;
      if (errno != EACCES && errno != ENOENT && errno != ENOTDIR) return;
    }
    path += length;
    if (*path == '\0') break;
  }
  errno = error;
}

// In the child, which shares our memory until it has become the command.
static _Noreturn void become_command(const struct Command* command, pid_t supervisor) {
  sigset_t none;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(kNoSupervisor);
  for (int signal_number = 1; signal_number < NSIG; ++signal_number) {
    signal(signal_number, SIG_DFL);
  }
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (command->output != NULL) attach_output(command->output);
  if (command->cwd != NULL && chdir(command->cwd) != 0) {
    failure.in_cwd = 1;
  } else {
    execute(command->argv);
  }
  failure.error = errno;
  _exit(kNotFound);
}

pid_t start_command(const struct Command* command) {
  extern char** environ;
  char** const ours = environ;
  const pid_t supervisor = getpid();
  // The child looks for its program along its own PATH; it has our memory until it has found it.
  if (command->env != NULL) environ = command->env;
  const pid_t child = vfork();
  if (child == 0) become_command(command, supervisor);
  environ = ours;
  return child;
}

// How much of `text` fits into `max` bytes without cutting a UTF-8 character in two.
static int whole_characters(const char* text, int max) {
  int length = (int)strnlen(text, (size_t)max);
  while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) --length;
  return length;
}

// At most `room` bytes.
static void describe_start(const struct Command* command, char* message, size_t room) {
  const char* name = failure.in_cwd ? command->cwd : command->argv[0];
  struct stat info;
  const int script = !failure.in_cwd && failure.error == ENOENT && strchr(name, '/') != NULL &&
                     stat(name, &info) == 0;
  snprintf(message, room, "cannot %s '%.*s': %s", failure.in_cwd ? "enter workingDir" : "start",
           whole_characters(name, 300), name,
           script ? "the interpreter that its first line names does not exist"
                  : strerror(failure.error));
}

void describe_failure(const struct Command* command, int status, char* message) {
  int length = 0;
  message[0] = '\0';
  if (command->name != NULL) {
    length = snprintf(message, kMessageBytes, "init container \"%.*s\" ",
                      whole_characters(command->name, 63), command->name);
  }
  char* const rest = message + length;
  const size_t room = (size_t)(kMessageBytes - length);
  if (failure.error != 0) {
    describe_start(command, rest, room);
  } else if (command->name != NULL && WIFSIGNALED(status)) {
    snprintf(rest, room, "was ended by signal %d", WTERMSIG(status));
  } else if (command->name != NULL) {
    snprintf(rest, room, "ended with exit code %d", WEXITSTATUS(status));
  }
  for (char* c = message; *c != '\0'; ++c) {
    if ((unsigned char)*c < ' ') *c = '?';
  }
}

int exit_code(int status) {
  if (failure.error != 0) {
    const int absent = failure.error == ENOENT || failure.error == ENOTDIR;
    return absent && !failure.in_cwd ? kNotFound : kCannotRun;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

enum { kPipeBytes = 1 << 20, kReadBytes = 1 << 16, kRounds = 32, kLastFlushMs = 500 };

int open_output(struct Output* output, const char* path) {
  int ends[2];
  memset(output, 0, sizeof *output);
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  output->from = ends[0];
  output->into = ends[1];
  fcntl(output->from, F_SETFL, O_NONBLOCK);
  // More room for bursts; what is refused changes nothing.
  fcntl(output->from, F_SETPIPE_SZ, kPipeBytes);
  output->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
  if (output->log < 0) {
    dprintf(STDERR_FILENO, "shirabe: cannot open %s: %s\n", path, strerror(errno));
  } else if (fchmod(output->log, 0644) != 0) {
    errno = 0;  // a reader without the right says so
  }
  output->stream = STDOUT_FILENO;
  const int flags = fcntl(output->stream, F_GETFL);
  if (flags < 0 || fcntl(output->stream, F_SETFL, flags | O_NONBLOCK) != 0) output->stream = -1;
  return 0;
}

void attach_output(const struct Output* output) {
  dup2(output->into, STDOUT_FILENO);
  dup2(output->into, STDERR_FILENO);
}

void hand_over_output(struct Output* output) {
  if (output->into >= 0) close(output->into);
  output->into = -1;
}

// How many of the bytes were written; -1 with errno if there was an error before the first.
static ssize_t write_some(int fd, const char* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = write(fd, data + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return done > 0 ? (ssize_t)done : -1;
    done += (size_t)n;
  }
  return (ssize_t)done;
}

static void write_log(struct Output* output, const char* data, size_t size) {
  char note[96];
  if (output->log < 0) return;
  if (output->lost_log > 0) {
    const int length = snprintf(
        note, sizeof note, "\nshirabe: %lld bytes of output are lost here\n", output->lost_log);
    if (write_some(output->log, note, (size_t)length) == length) output->lost_log = 0;
  }
  const ssize_t done = output->lost_log > 0 ? -1 : write_some(output->log, data, size);
  if (done < (ssize_t)size) output->lost_log += (long long)size - (done > 0 ? done : 0);
}

// Gives the reader of our standard output what it takes now.
static void drain_stream(struct Output* output) {
  if (output->stream < 0 || output->waiting == 0) return;
  const ssize_t done = write_some(output->stream, output->buffer, output->waiting);
  if (done < 0 && errno != EAGAIN) {
    output->stream = -1;
    output->waiting = 0;
  } else if (done > 0) {
    output->waiting -= (size_t)done;
    memmove(output->buffer, output->buffer + done, output->waiting);
  }
}

static void keep_for_stream(struct Output* output, const char* data, size_t size) {
  const size_t room = sizeof output->buffer - output->waiting;
  if (output->stream < 0) return;
  if (size > room) {
    output->lost_stream += (long long)size;
    return;
  }
  memcpy(output->buffer + output->waiting, data, size);
  output->waiting += size;
}

static void write_stream(struct Output* output, const char* data, size_t size) {
  char note[128];
  drain_stream(output);
  // Once it is slow it is given time to catch up, or the note would come with every buffer.
  if (output->lost_stream > 0 && output->waiting < sizeof output->buffer / 2) {
    const int length =
        snprintf(note, sizeof note,
                 "\nshirabe: %lld bytes are left out here; the log in the store has them\n",
                 output->lost_stream);
    output->lost_stream = 0;
    keep_for_stream(output, note, (size_t)length);
  }
  if (output->lost_stream > 0) {
    output->lost_stream += (long long)size;
    return;
  }
  keep_for_stream(output, data, size);
  drain_stream(output);
}

void pump_output(struct Output* output) {
  static char data[kReadBytes];
  drain_stream(output);
  for (int round = 0; output->from >= 0 && round < kRounds; ++round) {
    const ssize_t n = read(output->from, data, sizeof data);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      close(output->from);
      output->from = -1;
      return;
    }
    write_log(output, data, (size_t)n);
    write_stream(output, data, (size_t)n);
  }
}

void say(struct Output* output, const char* line) {
  write_log(output, line, strlen(line));
  write_stream(output, line, strlen(line));
}

void finish_output(struct Output* output) {
  // All writers are gone; what hangs in the kernel with the pipe open is not waited for.
  for (int round = 0; output->from >= 0 && round < kPipeBytes / kReadBytes; ++round) {
    pump_output(output);
  }
  if (output->lost_log > 0) write_log(output, "", 0);
  const long until = monotonic_ms() + kLastFlushMs;
  for (long left = kLastFlushMs; output->stream >= 0 && output->waiting > 0 && left > 0;
       left = until - monotonic_ms()) {
    struct pollfd ready = {.fd = output->stream, .events = POLLOUT};
    if (poll(&ready, 1, (int)left) <= 0) return;
    drain_stream(output);
  }
}

// What is left to read; `at` is NULL once something was not as it should be.
struct Reader {
  char* at;
  char* end;
};

static char* next_text(struct Reader* reader) {
  char* const text = reader->at;
  char* const end = text == NULL ? NULL : memchr(text, '\0', (size_t)(reader->end - text));
  reader->at = end == NULL ? NULL : end + 1;
  return end == NULL ? NULL : text;
}

// A number of texts and so many texts, as execve wants them; NULL if they are not there.
static char** next_list(struct Reader* reader) {
  const char* const number = next_text(reader);
  const long count = number == NULL ? -1 : strtol(number, NULL, 10);
  if (count < 0 || count > reader->end - reader->at) return NULL;
  char** const list = calloc((size_t)count + 1, sizeof *list);
  for (long i = 0; list != NULL && i < count; ++i) list[i] = next_text(reader);
  return reader->at == NULL ? NULL : list;
}

static int next_step(struct Reader* reader, struct Command* step) {
  step->name = next_text(reader);
  step->cwd = next_text(reader);
  if (step->cwd == NULL) return EINVAL;
  if (*step->cwd == '\0') step->cwd = NULL;
  step->argv = next_list(reader);
  step->env = step->argv == NULL ? NULL : next_list(reader);
  return step->env == NULL || step->argv[0] == NULL ? EINVAL : 0;
}

int read_steps(int fd, struct Steps* steps) {
  struct stat info;
  memset(steps, 0, sizeof *steps);
  if (fd < 0) return 0;
  if (fstat(fd, &info) != 0) return errno;
  char* const text = malloc((size_t)info.st_size + 1);
  if (text == NULL) return ENOMEM;
  const ssize_t size = pread(fd, text, (size_t)info.st_size, 0);
  close(fd);
  if (size != info.st_size) return EIO;
  struct Reader reader = {text, text + size};
  while (reader.at < reader.end) {
    const size_t room = (size_t)(steps->count + 1) * sizeof *steps->commands;
    struct Command* const more = realloc(steps->commands, room);
    if (more == NULL) return ENOMEM;
    steps->commands = more;
    memset(&more[steps->count], 0, sizeof *more);
    const int error = next_step(&reader, &more[steps->count]);
    if (error != 0) return error;
    ++steps->count;
  }
  return 0;
}
