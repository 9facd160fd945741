// What to do next for one experiment: every rule about counts, goals, ends, starts and stops. Pure:
// no I/O, no clock; the same input gives the same plan, so a plan may be made again after a crash.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/state/budget.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::experiment {

// A trial that is not in a terminal phase.
struct LiveTrial {
  const v1::Trial* trial = nullptr;
  const v1::Attempt* open = nullptr;  // its attempt that is not closed, if there is one
  bool leaves = false;                // that attempt is asked to end, or its program has ended
  // Of that attempt, what would be lost if it ended now; see VictimCandidate.
  absl::Duration unsaved = absl::InfiniteDuration();
  double price_per_hour = 0;
};

struct PlanInput {
  const v1::Experiment* experiment = nullptr;  // with its counts and best trial up to date
  std::vector<LiveTrial> live;                 // by number
  bool suspended = false;    // by us: stop what runs, start nothing, keep it for later
  std::optional<int> asked;  // trials are run by callers: how many ask now
  Limits limits = {};
  BudgetState money;
  absl::Time now;
};

struct Plan {
  // The experiment is over: nothing starts, what runs is stopped; the condition is set once
  // nothing is live (`conclude`).
  struct Ending {
    bool succeeded = false;
    std::string reason;  // Katib's, where Katib has it
    std::string message;
    std::optional<v1::StopRule> rule = {};  // of spec.shirabe.limits and stopWhen, if it was one
  };
  struct Stop {
    int64_t trial = 0;
    v1::Cause cause = v1::CAUSE_NONE;
    std::string why = {};  // this one, where only some are ended
  };
  std::optional<Ending> ending;
  bool conclude = false;
  std::vector<Stop> stop;      // ask these open attempts to end
  std::vector<int64_t> kill;   // trials that wait and will never start
  std::vector<int64_t> start;  // make the next attempt of these trials
  int suggest = 0;             // ask the algorithm for so many more trials, a few at a time
  bool more = false;           // there is more to start or to ask for, at once
  bool full = false;  // there will be no more trials than there are, unless a count is raised
  absl::Duration wake = absl::InfiniteDuration();  // until a waiting trial's time comes, or ends
  std::string waiting;  // why nothing new starts, in words, where that needs explaining
  std::string limited;  // which of the administrator's limits holds trials back, in words
  std::map<int64_t, std::string> why;  // why each trial that waits does, in words
  BudgetState money;                   // as the plan found it
};

Plan MakePlan(const PlanInput& input);

// Seconds between SIGTERM and SIGKILL.
absl::Duration GraceOf(const v1::Experiment& experiment);

}  // namespace shirabe::experiment
