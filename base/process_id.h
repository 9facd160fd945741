// Who a process is, for as long as the machine is up: a pid alone is reused, a pid with its start
// time and the boot is not. Used for leases and for adopting trials after a restart. Thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace shirabe {

struct ProcessId {
  std::string host;
  std::string boot;  // changes with every boot of the machine; in a container, its host's
  pid_t pid = 0;
  uint64_t start = 0;  // clock ticks since boot, as in /proc/PID/stat
  bool operator==(const ProcessId&) const = default;
};

ProcessId ThisProcess();
// The process that has this pid now; nullopt if there is none. A zombie counts as none.
std::optional<ProcessId> FindProcess(pid_t pid);
// How long ago a process of this boot started, by a clock that cannot be set; to 20 ms. Zero where
// the machine does not tell.
absl::Duration AgeOf(uint64_t start);
// Whether it still runs. True if it is on another host, which cannot be known from here.
bool MayBeAlive(const ProcessId& id);

// Who runs this process, by the system's account of it: alice@laptop; 1000@laptop where the system
// has no name for it.
std::string UserAtHost();

// host:pid:start:boot, and back; nullopt for anything else.
std::string ToString(const ProcessId& id);
std::optional<ProcessId> ParseProcessId(std::string_view text);

}  // namespace shirabe
