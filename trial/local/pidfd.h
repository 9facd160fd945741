// Processes by descriptor: a pidfd stays with its process, a pid may be given to another one. Raw
// system calls, because the C library of Debian 12 cannot be asked for them from C++. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "base/file_io.h"
#include "base/status.h"

namespace shirabe::trial {

std::vector<pid_t> AllProcesses();

// Not valid if there is no such process, or no descriptor to be had.
Fd OpenPidfd(pid_t pid);

// By which a supervisor is asked to end its attempt within so many milliseconds: see SendStop.
inline constexpr int kStopSignal = 40;

// Sends a signal, with a value that the receiver can read. A process that has ended is fine.
Status SendSignal(const Fd& pidfd, int signal, int value = 0);

// Asks a supervisor to end its attempt; it tells the program, and once only. 0 = at once.
Status SendStop(const Fd& pidfd, absl::Duration grace);

// Kills every process of this user whose environment holds SHIRABE_ATTEMPT_ID=`id`, and, with
// `session` > 0, every process of that session, until a look around finds none. For what a
// supervisor leaves behind when it is killed itself. Bounded to some seconds.
void KillLeftovers(const std::string& id, pid_t session);

// The variable by which they are found.
inline constexpr const char* kAttemptIdVariable = "SHIRABE_ATTEMPT_ID";

// One thread that sleeps until processes end. Thread-safe.

class ExitWatcher {
 public:
  // `on_exits` is called in the watcher's thread, with the ids of processes that ended at about
  // the same time. It must not destroy the watcher.
  using OnExits = std::function<void(const std::vector<uint64_t>& ids)>;

  static StatusOr<std::unique_ptr<ExitWatcher>> Create(OnExits on_exits);
  // What Create calls.
  ExitWatcher(Fd epoll, Fd stop, OnExits on_exits);
  // Waits for a call of on_exits that is under way.
  ~ExitWatcher();

  // `id` is reported once, when the process of `pidfd` ends, also if it has ended before. Closing
  // the descriptor ends the watch; a report that is on its way may still come.
  Status Watch(const Fd& pidfd, uint64_t id);

 private:
  void Run();

  Fd epoll_;
  Fd stop_;  // an eventfd, written once
  OnExits on_exits_;
  std::thread thread_;
};

}  // namespace shirabe::trial
