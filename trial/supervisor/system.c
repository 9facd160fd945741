#include "trial/supervisor/system.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

long long monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

long monotonic_ms(void) { return (long)(monotonic_ns() / 1000000); }

long long unix_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

ssize_t read_file(const char* path, char* buffer, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t n = read(fd, buffer, size - 1);
  close(fd);
  buffer[n > 0 ? n : 0] = '\0';
  return n;
}

const char* read_stat(const char* path, char* buffer, size_t size) {
  if (read_file(path, buffer, size) <= 0) return NULL;
  const char* close = strrchr(buffer, ')');
  return close != NULL && close[1] == ' ' ? close + 2 : NULL;
}

unsigned long long start_ticks(void) {
  char buffer[1024];
  const char* field = read_stat("/proc/self/stat", buffer, sizeof buffer);
  for (int i = 0; field != NULL && i < 19; ++i) {
    field = strchr(field, ' ');
    if (field != NULL) ++field;
  }
  return field == NULL ? 0 : strtoull(field, NULL, 10);
}

// The count in one file of "name number" lines.
static long oom_kills_in(const char* path) {
  char buffer[16384];
  if (read_file(path, buffer, sizeof buffer) <= 0) return -1;
  for (const char* at = buffer; (at = strstr(at, "oom_kill ")) != NULL; ++at) {
    if (at == buffer || at[-1] == '\n') return strtol(at + strlen("oom_kill "), NULL, 10);
  }
  return -1;
}

long oom_kills(void) {
  static const struct {
    const char *controller, *root, *file;
  } kVersions[] = {{"0::", "/sys/fs/cgroup", "memory.events"},
                   {":memory:", "/sys/fs/cgroup/memory", "memory.oom_control"}};
  char cgroups[4096], path[kPathBytes];
  const ssize_t known = read_file("/proc/self/cgroup", cgroups, sizeof cgroups);
  for (size_t i = 0; known > 0 && i < 2; ++i) {
    const char* at = strstr(cgroups, kVersions[i].controller);
    if (at == NULL) continue;
    at += strlen(kVersions[i].controller);
    snprintf(path, sizeof path, "%s%.*s/%s", kVersions[i].root, (int)strcspn(at, "\n"), at,
             kVersions[i].file);
    const long count = oom_kills_in(path);
    if (count >= 0) return count;
  }
  return oom_kills_in("/proc/vmstat");
}
