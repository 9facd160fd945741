// What two runs of a rehearsal say about a program: whether it may run on machines that vanish, and
// what to change if not. Judge() only looks at records, so that every verdict can be tried without
// running anything. Called by the command line. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rehearsal/rehearsal.h"
#include "view/record_json.h"

namespace shirabe::rehearsal {

enum class Verdict { kOk, kWarning, kFailed };

struct RehearsalCheck {
  std::string name;  // one word: saves, stops, resumes, continuous, finishes, interval
  Verdict verdict = Verdict::kOk;
  std::string message;
  std::string fix{};  // what to do; "" where nothing is wrong
};

// An attempt whose machine was taken away, and the one after it.
struct LostAttempt {
  int number = 0;
  double notice = 0;                    // seconds that it had
  double stopped_after = 0;             // seconds from the notice to its end
  std::string exit;                     // "exit 75", "signal 9"
  bool ran_on = false;                  // it heard nothing: killed, or went on to its own end
  double lost_seconds = 0;              // from its newest checkpoint to its end
  double again_seconds = 0;             // from its end to the next attempt's first sign of progress
  int64_t newest_step = 0;              // that was committed when it ended; 0 = none
  std::optional<int64_t> resumed_from;  // by the next attempt; nullopt if there is none
  std::optional<int64_t> first_step;    // that the next attempt reported, where it names its steps
};

// The value that is furthest from the undisturbed run's.
struct Deviation {
  std::string metric;
  int64_t step = 0;
  double baseline = 0;
  double preempted = 0;
  double relative = 0;
};

struct Continuity {
  int64_t compared = 0;                  // values that both runs have
  int64_t different = 0;                 // by more than the tolerance
  int64_t missing = 0;                   // values that only the undisturbed run has
  int64_t extra = 0;                     // values that only the disturbed run has
  bool differs_before_any_loss = false;  // so it is not the resuming
  Deviation worst{};
};

struct RehearsalReport {
  bool safe = false;
  double undisturbed_seconds = 0;
  double disturbed_seconds = 0;
  int planned = 0;  // reclaims
  std::vector<LostAttempt> lost;
  int64_t checkpoints = 0;                    // of the undisturbed run
  int64_t checkpoint_bytes = 0;               // the median one
  std::optional<double> checkpoint_seconds;   // to save one, the median
  std::optional<double> interval_seconds;     // between two, the median
  std::optional<double> recommended_seconds;  // between two, at the rate below
  double reclaims_per_hour = 0;
  Continuity continuity;
  std::vector<RehearsalCheck> checks;
};

struct JudgeOptions {
  double tolerance = 1e-6;       // relative, of metrics
  double reclaims_per_hour = 1;  // to be expected of a machine
};
RehearsalReport Judge(const Rehearsal& rehearsal, const JudgeOptions& options);

std::string ReportText(const RehearsalReport& report);
view::Json ReportJson(const RehearsalReport& report);

}  // namespace shirabe::rehearsal
