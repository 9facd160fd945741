// Files of an experiment's name that is not in the store: of one that was deleted and whose files
// are still being removed, or of one in another database. They are not ours to remove, and trials
// could not start beside them. Thread-safe; what it is made of outlives it.
#pragma once

#include "absl/time/time.h"
#include "base/clock.h"
#include "client/client.h"
#include "db/store.h"
#include "trial/file_layout.h"

namespace shirabe::client {

class LeftoverFiles {
 public:
  LeftoverFiles(db::Store* store, const trial::Layout* layout, Clock* clock)
      : store_(store), layout_(layout), clock_(clock) {}

  // kAlreadyExists, with the folder and what to do, if there are any on this machine.
  Status Check(const ExperimentKey& key) const;
  // The same, once they are gone or `deadline` (monotonic) has come; kCancelled if `wait` says so.
  Status AwaitRemoved(const ExperimentKey& key, absl::Duration deadline, const Wait& wait) const;

 private:
  db::Store* const store_;
  const trial::Layout* const layout_;
  Clock* const clock_;
};

}  // namespace shirabe::client
