// Finding and signalling everything that the command has started, whatever session or process group
// it moved to: the supervisor is a subreaper, so a process that loses its parent becomes its child,
// and following parents in /proc finds all. Called again until nothing is left, because processes
// may be started while the list is read. Single-threaded.
#pragma once

#include <sys/types.h>

// Signals every descendant of this process that is not in process group `but` (0 = none is spared).
void signal_descendants(int signal, pid_t but);
