// What may go: copies in artifact stores of experiments that have ended, and observations of trials
// that have.
//
// How long what experiments have had copied to artifact stores stays there: `keepDays` of the
// administrator's entry and of the experiment's own specification, whichever is less, counted from
// the experiment's end. Used by the verb prune, and by a server now and then
// (service/periodic_tasks.h). Safe beside servers and trials that run: an experiment's copies are
// deleted under its lease, so that nothing of it can start meanwhile, and never while it runs, is
// about to go on, or has its onSuccess job still before it. What is interrupted is begun again.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "client/local_client.h"
#include "db/maintenance.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::client {

struct CopyRetention {
  std::string ns;  // "" = of all namespaces
  Clock* clock = nullptr;
  bool dry_run = false;
  std::stop_token stop = {};
};

struct RemovedCopies {
  ExperimentKey experiment;
  std::string store;
  std::string error;  // why it could not be done; it is tried again the next time
};

// When the copies of an experiment are due; nullopt: never, or there are none.
std::optional<absl::Time> CopiesDue(const v1::Experiment& experiment,
                                    std::optional<double> days_of_store);

// Deletes those whose time is over, and says so with each experiment, by an event.
StatusOr<std::vector<RemovedCopies>> RemoveOldCopies(LocalClient& client,
                                                     const CopyRetention& options);

// The first, last, least and greatest of a metric.
inline constexpr int64_t kMinKeptObservations = 4;

// Which observations of a trial may go once it has ended: what thins rows out that no one will look
// at one by one. Called by client/store_prune. A pure function.
//
// Of each metric of the trial, and apart of its rows that no longer count, at most so many stay:
// the first and the last by step, the least and the greatest value, and others evenly spaced
// between. So a trial's objective and its observation (min, max, latest), which the record has,
// follow from the rows that stay, and curves keep their shape. Nothing that decides goes: the best
// trial and suggestions come from records of trials; an early-stopping rule compares curves of the
// objective, so where an experiment has one these rows stay, all that count.
//
// `rows` are all of one trial, superseded ones included; `keep` is at least kMinKeptObservations.
std::vector<db::ObservationKey> RowsToRemove(const v1::ExperimentSpec& spec,
                                             const std::vector<db::StoredObservation>& rows,
                                             int64_t keep);

}  // namespace shirabe::client
