// What the supervisor does besides where it is the first process of a container: it takes variables
// from a file, shows that it lives by a lock, and tells its command of a SIGTERM in the words of
// the control file. Single-threaded.
#pragma once

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
