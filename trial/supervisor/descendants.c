#include "trial/supervisor/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "trial/supervisor/system.h"

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
