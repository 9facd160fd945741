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
