// The two files by which the supervisor tells Shirabe what it does, now or after a restart: DIR/pid
// and DIR/exit, "key value" lines, published whole. trial/local/supervisor_records.h reads them.
#pragma once

#include <sys/types.h>

// What the pid record says; the strings are not kept.
struct PidRecord {
  const char* id;
  const char* devices;
  const char* place;
  long long began_ns;
};

// What the exit record says.
struct ExitRecord {
  const char* id;
  int code;
  int signal;  // 0 = none
  int oom;
  int killed;
  int told;
  const char* overdue;  // whose time was over, "" = none's
  long long began_ns, ended_ns, ran_ns;
  const char* message;
};

// Publishes DIR/pid unless there is one, which is an error (EEXIST): the attempt is taken. Returns
// the descriptor for write_child, -1 with errno if it could not.
int publish_pid(const char* dir, const struct PidRecord* record, off_t* child_field);

// Adds the command's pid, for people, and closes the descriptor.
void write_child(int fd, off_t field, pid_t child);

// Takes the disk space that the exit record will need, so that it can be written when the disk is
// full by then. Returns a descriptor for publish_exit, -1 if there is no space now.
int reserve_exit(const char* dir);

// Publishes DIR/exit. 0, or -1 with errno.
int publish_exit(const char* dir, const struct ExitRecord* record, int fd);
