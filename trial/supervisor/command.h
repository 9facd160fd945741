// Becoming the command: a process group of its own, default signals, no shell. One command in the
// life of a supervisor. Single-threaded.
#pragma once

#include <sys/types.h>

#include "trial/supervisor/output.h"

enum { kCannotRun = 126, kNotFound = 127, kNoSupervisor = 125, kMessageBytes = 512 };

struct Command {
  char** argv;
  const char* cwd;              // NULL = ours
  const struct Output* output;  // NULL = it writes where we do
};

// vfork: the supervisor sleeps until the command's program is in place, or failed to be. The pid,
// or -1 with errno.
pid_t start_command(const struct Command* command);

// Why it did not start, in one line of at most kMessageBytes; empty if it did.
void describe_failure(const struct Command* command, char* message);

// What a shell would say of it, from what waitpid said.
int exit_code(int status);
