// What may go from a store and its files once it has been there for long: observations beyond a
// number, files that belong to no trial that the store knows, and the space of what has gone. Used
// by the verb prune, and the first by a server now and then (service/periodic_tasks.h). Experiments
// themselves are deleted by Client::Delete. Safe beside servers and trials that run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/local_client.h"

namespace shirabe::client {

// How far an experiment's trials have been looked at.
struct ThinProgress {
  std::string uid;
  int64_t after_number = 0;  // all up to this one are thin
};

struct ThinOptions {
  std::string ns;    // "" = of all namespaces
  int64_t keep = 0;  // of each metric of a trial; at least kMinKeptObservations
  // Only trials that ended before: a report whose answer was lost is compared with the rows.
  absl::Time ended_before;
  bool dry_run = false;
  // For one who comes again: where it has been. null = looks at everything.
  std::map<ExperimentKey, ThinProgress>* progress = nullptr;
};

// How long a trial's rows stay as they are after its end.
inline constexpr absl::Duration kRowsUntouched = absl::Hours(1);

struct Thinned {
  int64_t trials = 0;
  int64_t observations = 0;
};

// Removes what client/retention.h does not keep, a trial at a time.
StatusOr<Thinned> ThinObservations(db::Store& store, const ThinOptions& options);

struct OrphanedFiles {
  std::string path;
  int64_t bytes = 0;
};

// Folders of experiments that the store does not have, of trials that it does not have of those
// that no process runs, and of stores in memory whose process is gone. Removed, unless `dry_run`.
StatusOr<std::vector<OrphanedFiles>> RemoveOrphans(LocalClient& client, const std::string& home,
                                                   bool dry_run);

// Gives what rows have left back to the disk, in pieces.
Status ReleaseSpace(LocalClient& client);

}  // namespace shirabe::client
