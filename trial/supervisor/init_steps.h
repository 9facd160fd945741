// The commands that come before the one: the init containers of a pod, one after another. The
// starter of the supervisor hands them over in a descriptor, so that no environment stands in a
// file or in a command line. Single-threaded.
#pragma once

#include "trial/supervisor/command.h"

struct Steps {
  struct Command* commands;
  int count;
};

// Reads all that the descriptor holds, and closes it. Of each step, each ended by NUL: its name,
// its working directory ("" = ours), the number of its arguments, the arguments, the number of its
// variables, the variables as NAME=value. 0 or an errno; what it reads stays in memory for good.
int read_steps(int fd, struct Steps* steps);
