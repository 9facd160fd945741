// Runs one trial of a user's program twice, undisturbed and with machines taken away from it, and
// keeps what was recorded: `shirabe rehearse`. Both runs have a home and a store of their own that
// go when they are over, and the same name, seed and parameters, so that all that differs comes
// from the reclaims. rehearsal_report.h judges. Called by the command line; blocks; one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "client/client.h"
#include "db/store.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::artifacts {
class StoreTable;
}

namespace shirabe::rehearsal {

struct RehearsalOptions {
  v1::Experiment experiment;         // valid, with defaults
  std::vector<std::string> params;   // NAME=VALUE, over the first point of the search
  int reclaims = 2;                  // the first without notice
  std::optional<double> notice;      // seconds, of the others; default the grace period
  uint64_t seed = 0;                 // of the moments of the reclaims
  std::vector<std::string> devices;  // GPUs that the trial may be given
  // That its code comes from; nothing is copied there. null = there are none.
  std::shared_ptr<const artifacts::StoreTable> stores = {};  // shared: with the executor
  std::string working_dir;
  Clock* clock = nullptr;
  std::function<void(const std::string&)> say;  // a line about what is going on
  client::Wait wait;                            // false: the user wants it to end
};

// One machine taken away, as it was planned.
struct PlannedPreemption {
  std::string pool;   // that the attempt ran in
  double at = 0;      // seconds since the first start
  double notice = 0;  // seconds
};

struct RehearsalRun {
  v1::Trial trial;
  std::vector<v1::Attempt> attempts;
  std::vector<v1::Checkpoint> checkpoints;
  std::vector<db::StoredObservation> rows;  // superseded ones included
  // What saving took, for each checkpoint that is still there and whose file system tells.
  std::vector<double> save_seconds;
};

struct Rehearsal {
  RehearsalRun baseline;
  RehearsalRun preempted;
  std::vector<PlannedPreemption> preemptions;
};

// kInvalidArgument for parameters that the search space has not; kFailedPrecondition, with the last
// lines of the program, if it does not even succeed undisturbed; kCancelled if interrupted.
StatusOr<Rehearsal> Rehearse(const RehearsalOptions& options);

// What is known of a training before its machines are taken away. Seconds.
struct Timing {
  double startup = 0;  // until its first start begins to work
  double restart = 0;  // until a later one does
  double whole = 0;    // the first start-up, and all of the work
};

// When to take the machine away: after 20 to 80 % of the work, one in each of as many equal parts,
// later by the time that the restarts take.
std::vector<PlannedPreemption> PlanPreemptions(const RehearsalOptions& options,
                                               const Timing& timing);

// Whether its machine was taken away from it.
bool WasPreempted(const v1::Attempt& attempt);

// From its first start to its end; until it first reported a metric.
double WholeSeconds(const RehearsalRun& run);
double StartupSeconds(const RehearsalRun& run);

// How often to save: often enough that a preemption costs little, seldom enough that saving does.
//
//   symbol    meaning                                         unit
//   C         time that one checkpoint takes                  s
//   M         mean time between preemptions                   s
//   tau       time of training between two checkpoints        s
//
// Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974:
//   tau = sqrt(2 C M).
// Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3),
// 2006, eq. 37, which holds where C is not small beside M:
//   tau = sqrt(2 C M) (1 + 1/3 sqrt(C / (2 M)) + 1/9 (C / (2 M))) - C   for C < 2 M,
//   tau = M                                                             otherwise.
// Called by the rehearsal. Pure.

// Both in seconds; 0 where either is not positive.
double YoungInterval(double cost, double mean_time_between_preemptions);
double DalyInterval(double cost, double mean_time_between_preemptions);

// Share of the time that goes into saving and into what preemptions take back: C / tau + tau / 2M.
double ExpectedOverhead(double interval, double cost, double mean_time_between_preemptions);

}  // namespace shirabe::rehearsal
