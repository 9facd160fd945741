// Where there is no file that the command could write its output to by itself, as in a container,
// the supervisor copies it: to a file, in full, and to its own standard output, as much as its
// reader takes. A full disk or a reader that is slow, or gone, loses what it must lose and
// says how much; it never stops the command, nor the other copy. Single-threaded.
#pragma once

#include <stddef.h>

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
