#include "trial/supervisor/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trial/supervisor/system.h"

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
