// The command: where its output goes, how it starts and ends, and those that come before it.
// Single-threaded.
#pragma once

#include <stddef.h>
#include <sys/types.h>

// Where there is no file that the command could write its output to by itself, as in a container,
// the supervisor copies it: to a file, in full, and to its own standard output, as much as its
// reader takes. A full disk or a reader that is slow, or gone, loses what it must lose and
// says how much; it never stops the command, nor the other copy.
enum { kOutputBytes = 256 * 1024 };

struct Output {
  int log;                          // the file; -1 if it cannot be opened
  int from;                         // what the command writes into, our end; -1 = closed
  int into;                         // and its end, until it has started
  int stream;                       // our standard output; -1 once it is not read
  long long lost_log, lost_stream;  // bytes since the last that went through
  size_t waiting;                   // bytes that the stream has not taken yet
  char buffer[kOutputBytes];
};

// 0, or -1 with errno: no pipe. A file that cannot be opened is said on standard error only.
int open_output(struct Output* output, const char* path);

// In the child: its standard output and error are the pipe's.
void attach_output(const struct Output* output);

// In the parent: the command has its end.
void hand_over_output(struct Output* output);

// Copies what there is, at most a few buffers of it.
void pump_output(struct Output* output);

// A line of our own, in both.
void say(struct Output* output, const char* line);

// Nothing more will come: copies the rest.
void finish_output(struct Output* output);

// Becoming the command: a process group of its own, default signals, no shell. One command at a
// time, and each only once.
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

// The commands that come before the one: the init containers of a pod, one after another. The
// starter of the supervisor hands them over in a descriptor, so that no environment stands in a
// file or in a command line.
struct Steps {
  struct Command* commands;
  int count;
};

// Reads all that the descriptor holds, and closes it. Of each step, each ended by NUL: its name,
// its working directory ("" = ours), the number of its arguments, the arguments, the number of its
// variables, the variables as NAME=value. 0 or an errno; what it reads stays in memory for good.
int read_steps(int fd, struct Steps* steps);
