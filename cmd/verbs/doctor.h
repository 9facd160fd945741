// What `doctor` finds out, one check a line, and the checks of `doctor --security`, which say what
// is open: files that others can read, addresses that answer without a token or can be read on the
// wire. They look and change nothing. Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/state_location.h"
#include "cmd/server_contexts.h"

namespace shirabe::cmd {

struct Check {
  enum class State { kOk, kWarning, kError };
  std::string name;
  State state = State::kOk;
  std::string detail;
  std::string fix = {};
};

inline Check Failed(const std::string& name, const Status& status, const std::string& fix) {
  return {name, Check::State::kError, Message(status), fix};
}

// Whether files of this machine's store are the user's alone, and as whom trials run.
std::vector<Check> CheckFileSecurity(const client::StateLocation& place);

// What a server of this machine listens on: an entry for each address of each `shirabe serve` and
// `shirabe controller` that this user can look at. `proc` is where /proc is.
std::vector<Check> CheckListeners(const std::string& proc);

// Whether the server that is meant answers callers without a token, and over what.
std::vector<Check> CheckServerSecurity(const Access& access);

}  // namespace shirabe::cmd
