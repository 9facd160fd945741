// A program that runs beside a verb, in a process group of its own, and ends with it: however the
// verb ends, also by SIGKILL, none of its processes stays. Used by the main thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace shirabe::cmd {

// Where the shell would find it; nullopt if PATH has no such program.
std::optional<std::string> FindOnPath(const std::string& name);

class Companion {
 public:
  // `words[0]` is its path.
  static StatusOr<std::unique_ptr<Companion>> Start(const std::vector<std::string>& words);
  // Asks all of it to end, and after five seconds ends it.
  ~Companion();
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  // How it ended, in words, as "exit code 1"; nullopt while it runs.
  std::optional<std::string> Ended();

 private:
  explicit Companion(pid_t pid) : pid_(pid) {}

  const pid_t pid_;
  std::optional<std::string> ended_;
};

}  // namespace shirabe::cmd
