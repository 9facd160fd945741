// The part of `run` that lasts: owns the experiment in this process, shows how it gets on, and
// stops gracefully when the user interrupts. Used by the main thread.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "cmd/session.h"
#include "cmd/terminal.h"

namespace shirabe::cmd {

struct RunLoopOptions {
  ExperimentKey key;
  client::ExecutionOptions machines;     // what trials get from this machine
  std::string again;                     // the command that goes on after an interruption
  std::function<void()> meanwhile = {};  // called again and again while it runs
};

enum class RunEnd { kEnded, kInterrupted };

// Until the experiment has ended or the user has interrupted it. kAlreadyExists, naming the holder,
// if another process runs it; kAborted if another took it over; kNotFound if it was deleted.
// `interrupts` are those since the program began.
StatusOr<RunEnd> RunUntilEnd(client::LocalClient& client, const RunLoopOptions& options,
                             Interrupts& interrupts);

}  // namespace shirabe::cmd
