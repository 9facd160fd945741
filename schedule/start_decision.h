// What a ScheduledExperiment does next, in CronJob's words: which start is due, which experiments
// of it end or go. Pure: the same input gives the same decision, so that it may be made again after
// a crash; what it starts is named after its scheduled time, so that starting it twice makes one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "schedule/cron_schedule.h"

namespace shirabe::schedule {

enum class ConcurrencyPolicy {
  kAllow,    // starts do not look at what runs
  kForbid,   // none while an earlier one runs; it comes later, unless its deadline has passed
  kReplace,  // what runs is stopped first
};

struct StartRules {
  CronSchedule schedule;
  ConcurrencyPolicy concurrency = ConcurrencyPolicy::kAllow;
  bool suspend = false;
  std::optional<absl::Duration> starting_deadline{};  // a start that is later is missed
  int successful_history_limit = 3;                   // ended experiments that are kept
  int failed_history_limit = 1;
};

// An experiment that was started for it.
struct StartedExperiment {
  std::string name;
  absl::Time scheduled;
  bool ended = false;
  bool succeeded = false;
};

struct ScheduleState {
  ExperimentKey key;
  absl::Time created;
  std::optional<absl::Time> last_scheduled{};  // the scheduled time of the last start
  std::vector<StartedExperiment> started;      // those that are there
};

struct StartDecision {
  // The one start that is due: of several that were missed the last, as CronJob does.
  std::optional<absl::Time> start;
  std::string name;               // of its experiment
  std::vector<std::string> stop;  // first
  std::vector<std::string> remove;
  int missed = 0;       // starts that are left out for it; at most kMaxMissed are counted
  std::string waiting;  // why a start that is due is not made, in words
  absl::Time wake = absl::InfiniteFuture();  // when to look again
};

inline constexpr int kMaxMissed = 100;
// Experiments of one schedule that have not ended, at most: then starts wait.
inline constexpr size_t kMaxActive = 100;

StartDecision DecideStart(const StartRules& rules, const ScheduleState& state, absl::Time now);

// NAME-<minutes since 1970>, as CronJob names its Jobs. A schedule's name may have 31 characters.
std::string ExperimentNameOf(const std::string& schedule, absl::Time scheduled);
// Of one that a user starts: NAME-r<seconds since 1970, to the base of 36>, which no scheduled one
// has.
std::string ExperimentNameNow(const std::string& schedule, absl::Time now);
// The same of a start that is asked for by an object of a cluster: one name for one `request`.
std::string ExperimentNameFor(const std::string& schedule, uint64_t request);
inline constexpr size_t kMaxScheduleName = 31;

}  // namespace shirabe::schedule
