// What the supervisor of an attempt has left on disk (trial/supervisor/supervisor.c describes the
// two files), read together with the process table. This is how an attempt is found again after a
// restart. Thread-safe: no state.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/file_io.h"
#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"
#include "trial/executor.h"
#include "trial/local/simulated_preemption.h"

namespace shirabe::trial {

// Whose limit of time that is, in the words of a record.
inline constexpr char kJobLimit[] = "activeDeadlineSeconds of its Job";
inline constexpr char kPodLimit[] = "activeDeadlineSeconds of its pod";

struct PidRecord {
  pid_t pid = 0;       // of the supervisor
  uint64_t start = 0;  // its start, in clock ticks since boot
  std::string boot;
  std::string id;       // AttemptId
  std::string devices;  // as in CUDA_VISIBLE_DEVICES; "" = none were given
  std::string place;    // EncodePlacement; "" = not on a node of a pool
  absl::Time began;
};

struct ExitRecord {
  std::string id;
  int code = 0;  // 128 + signal if a signal ended it
  int signal = 0;
  bool oom = false;             // killed, not by us, while the kernel counted an out-of-memory kill
  bool killed = false;          // by us
  bool stop_requested = false;  // asked to end, or killed, before it ended
  std::string overdue;          // kJobLimit or kPodLimit, if that had passed; "" = none
  absl::Time began;
  absl::Time ended;
  std::optional<absl::Duration> ran;  // by a clock that is never set
  std::string message;
};

// kNotFound if there is none, kDataLoss if it cannot be understood.
StatusOr<PidRecord> ReadPidRecord(const std::string& dir);
StatusOr<ExitRecord> ReadExitRecord(const std::string& dir);

// Node, pool, capacity and prices as one line of a record, and back; "" for what is not on a pool.
std::string EncodePlacement(const v1::Placement& placement);
void DecodePlacement(const std::string& text, v1::Placement& placement);

// What identifies an attempt without giving its secret away: 32 hexadecimal digits of the SHA-256
// of its name and token.
std::string AttemptId(const AttemptKey& key, const std::string& token);

// An attempt as its directory and the process table show it.
struct AttemptProcess {
  enum class State {
    kNeverStarted,  // no supervisor has published itself
    kForeign,       // one with another token, or an unreadable record
    kRunning,       // `pidfd` is its supervisor, unless descriptors ran out
    kEnded,         // `exit` is set
    kVanished,      // its supervisor is gone and has left no exit record
  };
  State state = State::kNeverStarted;
  PidRecord pid;  // pid 0 if there is none
  ExitRecord exit;
  std::optional<ReclaimRecord> reclaim;  // its machine was taken, or is about to be
  Fd pidfd;
  std::string message;     // why, where the end was not seen
  bool leftovers = false;  // processes of it may be there all the same: see KillLeftovers
};

// A process that merely has the recorded pid, with another start time or from before the last
// boot, is not the supervisor.
AttemptProcess FindAttemptProcess(const std::string& dir, const std::string& id);

// The same once `supervisor`, perhaps our child, seems to have ended: reaps it, and kills what it
// left behind if it was killed itself. Never kNeverStarted.
struct EndedSupervisor {
  pid_t pid = 0;
  std::string dir;
  std::string log;
  std::string id;
};
AttemptProcess ReapSupervisor(const EndedSupervisor& supervisor);

// From what was found of an attempt to what callers of an Executor see of it. Pure functions.

// Brings `observed` up to date. A start time it has stays, and the end is never before it, whatever
// the wall clock did meanwhile; `now` is the end of an attempt whose end was not seen.
void UpdateStatus(const AttemptProcess& found, absl::Time now, AttemptStatus& observed);

}  // namespace shirabe::trial
