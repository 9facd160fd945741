// Starting the supervisor of an attempt, in a session of its own, with nothing of ours: standard
// input is /dev/null, standard output and error are the log, no other descriptor, no blocked or
// ignored signal. Thread-safe.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace shirabe::trial {

// What runs before the program, in the same directory of records and the same log.
struct SpawnStep {
  std::string name;
  std::string working_dir;  // absolute; "" = ours
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // all of it
};

struct SpawnRequest {
  std::string supervisor;   // the program's path
  std::string dir;          // of the attempt, for its records
  int log = -1;             // open; appended to
  std::string id;           // AttemptId
  std::string working_dir;  // absolute; "" = ours
  std::string devices;      // for the record
  std::string place;        // for the record: EncodePlacement
  absl::Duration grace;
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;  // all of it
  std::vector<SpawnStep> steps;                    // one after another; each must succeed
  std::optional<absl::Duration> limit;             // for all of them and the program
  std::string limit_of;                            // whose limit that is, for the record
};

// Returns the supervisor's pid once it has published its record and started the command; its exit
// record tells if that could not be executed. On an error nothing was started:
// kResourceExhausted: processes, memory, descriptors or disk have run out.
// kAlreadyExists: another supervisor has published itself in `dir`.
// kInvalidArgument: more arguments and variables than the system can pass.
StatusOr<pid_t> SpawnSupervisor(const SpawnRequest& request);

// The folders of the attempts of this home whose supervisors run.
std::vector<std::string> RunningFolders(const std::string& home);

// The supervisor program, which travels inside this one. Thread-safe.

// The program's bytes (trial/local/supervisor_blob.cc); they live as long as the process.
std::string_view SupervisorProgram();

// Puts the program under `home`/bin, named by its digest, and returns its path. One that is there
// already is used again, and put right if its bytes differ.
StatusOr<std::string> UnpackSupervisor(const std::string& home);

}  // namespace shirabe::trial
