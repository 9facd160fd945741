// How long what experiments have had copied to artifact stores stays there: `keepDays` of the
// administrator's entry and of the experiment's own specification, whichever is less, counted from
// the experiment's end. Used by the verb prune, and by a server now and then
// (service/store_sweepers.h). Safe beside servers and trials that run: an experiment's copies are
// deleted under its lease, so that nothing of it can start meanwhile, and never while it runs, is
// about to go on, or has its onSuccess job still before it. What is interrupted is begun again.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "client/local_client.h"

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

}  // namespace shirabe::client
