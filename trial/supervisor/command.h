// Becoming the command: a process group of its own, default signals, no shell. One command at a
// time, and each only once. Single-threaded.
#pragma once

#include <sys/types.h>

#include "trial/supervisor/output.h"

enum { kCannotRun = 126, kNotFound = 127, kNoSupervisor = 125, kMessageBytes = 512 };

struct Command {
  char** argv;
  const char* name;             // of an init container; NULL = it is the program itself
  char** env;                   // NULL = ours
  const char* cwd;              // NULL = ours
  const struct Output* output;  // NULL = it writes where we do
};

// vfork: the supervisor sleeps until the command's program is in place, or failed to be. The pid,
// or -1 with errno.
pid_t start_command(const struct Command* command);

// Why it did not start, in one line of at most kMessageBytes; empty if it did. What an init
// container ended with, too, unless it succeeded: `status` is from waitpid.
void describe_failure(const struct Command* command, int status, char* message);

// What a shell would say of it, from what waitpid said.
int exit_code(int status);
