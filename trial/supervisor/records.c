#include "trial/supervisor/records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trial/supervisor/system.h"

enum { kRecordBytes = 4096 };

// Moves `from` to `to` only if there is no `to` yet.
static int publish_once(const char* from, const char* to) {
  return link(from, to) == 0 ? unlink(from) : -1;
}

// The length is that of what was written to `text`; *child_field is where the child's pid goes.
static int format_pid(const struct PidRecord* record, char* text, off_t* child_field) {
  char boot[64];
  if (read_file("/proc/sys/kernel/random/boot_id", boot, sizeof boot) < 0) boot[0] = '\0';
  boot[strcspn(boot, "\n")] = '\0';
  const int room = kRecordBytes - 32;
  int length = snprintf(text, (size_t)room,
                        "pid %d\nstart %llu\nboot %s\nid %s\nbegan %lld\nplace %s\n"
                        "devices %s\nchild ",
                        (int)getpid(), start_ticks(), boot, record->id, record->began_ns,
                        record->place, record->devices);
  if (length >= room) length = room - 1;
  *child_field = length;
  return length + sprintf(text + length, "%10d\n", 0);
}

int publish_pid(const char* dir, const struct PidRecord* record, off_t* child_field) {
  char temporary[kPathBytes], final[kPathBytes], text[kRecordBytes];
  snprintf(temporary, sizeof temporary, "%s/pid.%d", dir, (int)getpid());
  snprintf(final, sizeof final, "%s/pid", dir);
  const int length = format_pid(record, text, child_field);
  const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return -1;
  if (write(fd, text, (size_t)length) == length && publish_once(temporary, final) == 0) return fd;
  const int error = errno;
  unlink(temporary);
  close(fd);
  errno = error;
  return -1;
}

void write_child(int fd, off_t field, pid_t child) {
  char text[16];
  const int length = sprintf(text, "%10d", (int)child);
  // Worth no failure: it overwrites bytes that are there, and nothing depends on it.
  if (pwrite(fd, text, (size_t)length, field) != length) errno = 0;
  close(fd);
}

int reserve_exit(const char* dir) {
  char path[kPathBytes], blank[kRecordBytes];
  snprintf(path, sizeof path, "%s/exit.tmp", dir);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  memset(blank, '\n', sizeof blank);
  if (fd < 0 || write(fd, blank, sizeof blank) == sizeof blank) return fd;
  close(fd);
  unlink(path);
  return -1;
}

int publish_exit(const char* dir, const struct ExitRecord* record, int fd) {
  char temporary[kPathBytes], final[kPathBytes], text[kRecordBytes];
  snprintf(temporary, sizeof temporary, "%s/exit.tmp", dir);
  snprintf(final, sizeof final, "%s/exit", dir);
  const int length = snprintf(
      text, sizeof text,
      "id %s\ncode %d\nsignal %d\noom %d\nkilled %d\ntold %d\noverdue %s\nbegan %lld\nended %lld\n"
      "ran %lld\nmessage %s\n",
      record->id, record->code, record->signal, record->oom, record->killed, record->told,
      record->overdue, record->began_ns, record->ended_ns, record->ran_ns, record->message);
  if (fd < 0) fd = reserve_exit(dir);
  if (fd < 0 || pwrite(fd, text, (size_t)length, 0) != length) return -1;
  if (ftruncate(fd, length) != 0) errno = 0;  // the blank lines would do no harm
  return rename(temporary, final);
}
