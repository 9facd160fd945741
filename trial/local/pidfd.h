// Processes by descriptor: a pidfd stays with its process, a pid may be given to another one. Raw
// system calls, because the C library of Debian 12 cannot be asked for them from C++. Thread-safe.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/time/time.h"
#include "base/file_io.h"
#include "base/status.h"

namespace shirabe::trial {

// Not valid if there is no such process, or no descriptor to be had.
Fd OpenPidfd(pid_t pid);

// By which a supervisor is asked to end its attempt within so many milliseconds.
inline constexpr int kStopSignal = 40;

// Sends a signal, with a value that the receiver can read. A process that has ended is fine.
Status SendSignal(const Fd& pidfd, int signal, int value = 0);

// Kills every process of this user whose environment holds SHIRABE_ATTEMPT_ID=`id`, and, with
// `session` > 0, every process of that session, until a look around finds none. For what a
// supervisor leaves behind when it is killed itself. Bounded to some seconds.
void KillLeftovers(const std::string& id, pid_t session);

// The variable by which they are found.
inline constexpr const char* kAttemptIdVariable = "SHIRABE_ATTEMPT_ID";

}  // namespace shirabe::trial
