#include "trial/supervisor/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "trial/supervisor/system.h"

enum { kFileBytes = 1 << 16 };

// What does not fit stays out: the program can be started without it, and says what it misses.
static void put_before(const char* name, const char* value, const char* there) {
  static char joined[kFileBytes];
  const int length = snprintf(joined, sizeof joined, "%s:%s", value, there);
  if (length > 0 && (size_t)length < sizeof joined) setenv(name, joined, 1);
}

void read_environment(const char* path) {
  static char text[kFileBytes];
  if (read_file(path, text, sizeof text) < 0) return;
  for (char* line = text; *line != '\0';) {
    char* end = line + strcspn(line, "\n");
    char* next = *end == '\0' ? end : end + 1;
    *end = '\0';
    char* equals = strchr(line, '=');
    if (equals != NULL && equals != line) {
      *equals = '\0';
      const int before = equals[-1] == '+';
      if (before) equals[-1] = '\0';
      const char* there = getenv(line);
      const int empty = there == NULL || *there == '\0';
      if (empty) setenv(line, equals + 1, 1);
      if (!empty && before) put_before(line, equals + 1, there);
    }
    line = next;
  }
}

void lock_alive(const char* dir) {
  char path[kPathBytes];
  snprintf(path, sizeof path, "%s/alive", dir);
  // Never closed: the kernel lets go of the lock when we end.
  const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd >= 0 && flock(fd, LOCK_EX) != 0) errno = 0;
}

// The text after "key": and spaces; NULL if there is no such key.
static const char* value_of(const char* json, const char* key) {
  const char* at = strstr(json, key);
  if (at == NULL) return NULL;
  at += strlen(key);
  at += strspn(at, " \t:");
  return at;
}

void write_notice(const char* path, long grace_ms) {
  char text[4096], beside[kPathBytes];
  long id = 0;
  if (read_file(path, text, sizeof text) > 0) {
    const char* reason = value_of(text, "\"reason\"");
    const char* last = value_of(text, "\"id\"");
    if (reason != NULL && strncmp(reason, "\"checkpoint\"", 12) != 0) return;
    if (last != NULL) id = strtol(last, NULL, 10);
  }
  const long long deadline = (unix_ns() + grace_ms * 1000000LL) / 1000000000LL;
  snprintf(beside, sizeof beside, "%s.notice", path);
  const int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return;
  const int length =
      snprintf(text, sizeof text, "{\"deadline\":%lld,\"id\":%ld,\"reason\":\"preempt\"}\n",
               deadline, id + 1);
  const int whole = write(fd, text, (size_t)length) == length;
  close(fd);
  if (!whole || rename(beside, path) != 0) unlink(beside);
}
