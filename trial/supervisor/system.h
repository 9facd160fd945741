// What the supervisor asks the kernel. Nothing here fails loudly: a value that cannot be read is a
// stated default, because a trial must not die of a missing /proc file. Single-threaded.
#pragma once

#include <stddef.h>
#include <sys/types.h>

// The same numbers on every architecture; the C library may be too old to name them.
enum { kPidfdSendSignal = 424, kPidfdOpen = 434, kCloseRange = 436 };

enum { kPathBytes = 4096 };

// Never steps back; since an arbitrary start.
long monotonic_ms(void);
long long monotonic_ns(void);
// Unix time.
long long unix_ns(void);

// Reads at most `size`-1 bytes and ends them with NUL; the number of bytes, -1 on an error.
ssize_t read_file(const char* path, char* buffer, size_t size);

// The fields of a /proc/PID/stat after the command's name, which may hold anything: "S 1 2 3 …".
// They lie in `buffer`; NULL if the file cannot be read.
const char* read_stat(const char* path, char* buffer, size_t size);

// When this process was started, in clock ticks since boot; 0 if unknown.
unsigned long long start_ticks(void);

// The kernel's count of out-of-memory kills, in the narrowest scope that keeps one: the cgroup
// (version 2, then 1), else the machine. -1 if there is none.
long oom_kills(void);

// Finding and signalling everything that the command has started, whatever session or process group
// it moved to: the supervisor is a subreaper, so a process that loses its parent becomes its child,
// and following parents in /proc finds all. Called again until nothing is left, because processes
// may be started while the list is read.

// Signals every descendant of this process that is not in process group `but` (0 = none is spared).
void signal_descendants(int signal, pid_t but);

// What the supervisor does besides where it is the first process of a container: it takes variables
// from a file, shows that it lives by a lock, and tells its command of a SIGTERM in the words of
// the control file.

// Adds the NAME=value lines of the file to our environment, which the command gets. A variable that
// has a value already keeps it: the author of the container's specification meant it. NAME+=value
// goes before what is there, with a ':' between them.
void read_environment(const char* path);

// Holds a lock on DIR/alive until this process ends, however it ends. Taken before DIR/pid stands,
// so that a reader who sees that file and no lock knows that DIR/exit will not come.
void lock_alive(const char* dir);

// Puts {"id", "reason": "preempt", "deadline"} in place of the control file, unless a request to
// end stands there: the server's own words are better than ours.
void write_notice(const char* path, long grace_ms);
