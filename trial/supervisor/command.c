#include "trial/supervisor/command.h"

#include <errno.h>
#include <fcntl.h>
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
