#include "trial/supervisor/system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
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

struct Process {
  pid_t pid, parent, group;
  int ours;
};

struct Processes {
  struct Process* all;
  size_t count, room;
};

static int read_process(pid_t pid, struct Process* process) {
  char path[64], buffer[1024], state;
  int parent, group;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  const char* stat = read_stat(path, buffer, sizeof buffer);
  if (stat == NULL || sscanf(stat, "%c %d %d", &state, &parent, &group) != 3) return 0;
  *process = (struct Process){pid, parent, group, 0};
  return 1;
}

static void list_processes(struct Processes* list) {
  DIR* proc = opendir("/proc");
  struct dirent* entry;
  list->count = 0;
  while (proc != NULL && (entry = readdir(proc)) != NULL) {
    const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
    if (pid <= 0) continue;
    if (list->count == list->room) {
      const size_t room = list->room == 0 ? 512 : 2 * list->room;
      struct Process* more = realloc(list->all, room * sizeof *more);
      if (more == NULL) break;
      list->all = more;
      list->room = room;
    }
    if (read_process(pid, &list->all[list->count])) ++list->count;
  }
  if (proc != NULL) closedir(proc);
}

// Marks the children of `parent`, and theirs.
static void mark_descendants(struct Processes* list, pid_t parent) {
  for (size_t i = 0; i < list->count; ++i) {
    struct Process* process = &list->all[i];
    if (process->ours || process->parent != parent) continue;
    process->ours = 1;
    mark_descendants(list, process->pid);
  }
}

// A number read from /proc may belong to another process by now: pin the process, look again.
static void signal_pinned(const struct Process* process, int signal) {
  struct Process now;
  const int pin = (int)syscall(kPidfdOpen, process->pid, 0);
  if (pin < 0) {
    if (errno == ENOSYS) kill(process->pid, signal);
    return;
  }
  if (read_process(process->pid, &now) &&
      (now.parent == process->parent || now.parent == getpid())) {
    syscall(kPidfdSendSignal, pin, signal, NULL, 0);
  }
  close(pin);
}

void signal_descendants(int signal, pid_t but) {
  static struct Processes list;
  list_processes(&list);
  mark_descendants(&list, getpid());
  for (size_t i = 0; i < list.count; ++i) {
    if (list.all[i].ours && list.all[i].group != but) signal_pinned(&list.all[i], signal);
  }
}

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
